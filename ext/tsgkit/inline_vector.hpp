// A vector whose first N items lie inside it: most of those that samplers keep, one for each dish, have one or two
// items, and looking at these costs no second access to memory. It knows no model. Items are copied as bytes.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace tsgkit {

template <class Item, uint32_t N = 2>
class InlineVector {
    static_assert(std::is_trivially_copyable<Item>::value && N > 0, "items are copied as bytes");

public:
    InlineVector() noexcept : size_(0), capacity_(N) {}

    InlineVector(const InlineVector& other) : InlineVector() {
        if (other.size_ > N) reserve(other.size_);
        std::copy_n(other.data(), other.size_, data());
        size_ = other.size_;
    }

    InlineVector(InlineVector&& other) noexcept : InlineVector() { swap(other); }

    InlineVector& operator=(InlineVector other) noexcept {
        swap(other);
        return *this;
    }

    ~InlineVector() {
        if (capacity_ > N) delete[] outside_;
    }

    void swap(InlineVector& other) noexcept {
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
        // Whichever of the two members is larger, the other one is part of it.
        std::swap(bytes_, other.bytes_);
    }

    size_t size() const noexcept { return size_; }
    Item* data() noexcept { return capacity_ > N ? outside_ : inside_; }
    const Item* data() const noexcept { return capacity_ > N ? outside_ : inside_; }

    Item& operator[](size_t position) noexcept {
        assert(position < size_);
        return data()[position];
    }
    const Item& operator[](size_t position) const noexcept {
        assert(position < size_);
        return data()[position];
    }

    // Put an item before the one at this position.
    void insert_at(size_t position, Item item) {
        assert(position <= size_);
        if (size_ == capacity_) reserve(2 * capacity_);
        Item* first = data();
        std::copy_backward(first + position, first + size_, first + size_ + 1);
        first[position] = item;
        ++size_;
    }

    void erase_at(size_t position) noexcept {
        assert(position < size_);
        Item* first = data();
        std::copy(first + position + 1, first + size_, first + position);
        --size_;
    }

private:
    struct Bytes {
        alignas(Item) alignas(Item*) unsigned char values[sizeof(Item) * N > sizeof(Item*) ? sizeof(Item) * N : sizeof(Item*)];
    };

    uint32_t size_, capacity_;
    union {
        Item inside_[N];
        Item* outside_;
        Bytes bytes_;
    };

    void reserve(uint32_t capacity) {
        Item* items = new Item[capacity];
        std::copy_n(data(), size_, items);
        if (capacity_ > N) delete[] outside_;
        outside_ = items;
        capacity_ = capacity;
    }
};

}  // namespace tsgkit
