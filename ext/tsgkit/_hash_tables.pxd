# Hash tables of C++ whose functions report that memory has run out. Cython takes `table[key] = value` of libcpp for one
# that cannot fail, and the process would end.
#
# `KeyTable` gives numbers to keys in one array, with linear probing: a look-up costs one access to memory, where those
# of C++ follow a pointer to every entry.
from libc.stdint cimport int32_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._types cimport index_t


cdef enum:
    NO_NUMBER = -1       # of a key that the table does not have
    FIRST_KEYS = 1024


cdef struct KeySlot:
    uint64_t key
    int32_t number       # NO_NUMBER: the slot is free


cdef cppclass KeyTable:
    vector[KeySlot] slots    # none, or a power of two
    size_t n_keys


cdef inline size_t slot_of_key(const KeyTable* table, uint64_t key) noexcept nogil:
    """Where a key is, or would be put."""
    cdef size_t mask = table.slots.size() - 1
    cdef uint64_t code = key * <uint64_t>0x9e3779b97f4a7c15
    cdef size_t slot = (code ^ (code >> 32)) & mask
    while table.slots[slot].number != NO_NUMBER and table.slots[slot].key != key:
        slot = (slot + 1) & mask
    return slot


cdef inline int32_t find_key(const KeyTable* table, uint64_t key) noexcept nogil:
    """The number of a key, or NO_NUMBER."""
    return NO_NUMBER if table.slots.empty() else table.slots[slot_of_key(table, key)].number


cdef inline void clear_keys(KeyTable* table) noexcept nogil:
    """Forget all keys; the memory is kept."""
    cdef size_t slot
    for slot in range(table.slots.size()):
        table.slots[slot].number = NO_NUMBER
    table.n_keys = 0


cdef inline int add_key(KeyTable* table, uint64_t key, int32_t number) except -1 nogil:
    """Give a number to a key that has none."""
    cdef KeyTable larger
    cdef KeySlot free
    cdef size_t slot
    if 2 * (table.n_keys + 1) > table.slots.size():
        free.key, free.number = 0, NO_NUMBER
        larger.slots.resize(max(<size_t>FIRST_KEYS, 2 * table.slots.size()), free)
        for slot in range(table.slots.size()):
            if table.slots[slot].number != NO_NUMBER:
                larger.slots[slot_of_key(&larger, table.slots[slot].key)] = table.slots[slot]
        table.slots.swap(larger.slots)
    slot = slot_of_key(table, key)
    table.slots[slot].key, table.slots[slot].number = key, number
    table.n_keys += 1
    return 0


cdef extern from *:
    """
    template <class Table, class Key, class Value>
    inline void tsgkit_put(Table& table, const Key& key, const Value& value) { table[key] = value; }
    """
    # table[key] = value
    void put "tsgkit_put"[Table, Key, Value](Table& table, const Key& key, const Value& value) except + nogil

cdef extern from *:
    """
    #include <cstdint>
    #include <unordered_map>
    class TripleTable {
    public:
        int64_t find_or_add(int64_t a, int64_t b, int64_t c, int64_t n) {
            return numbers_.emplace(Triple{a, b, c}, n).first->second;
        }
        void clear() { numbers_.clear(); }

    private:
        struct Triple {
            int64_t a, b, c;
            bool operator==(const Triple& other) const { return a == other.a && b == other.b && c == other.c; }
        };
        struct Hash {
            size_t operator()(const Triple& key) const {
                uint64_t hash = static_cast<uint64_t>(key.a) * 0x9e3779b97f4a7c15ULL;
                hash = (hash ^ (hash >> 32) ^ static_cast<uint64_t>(key.b)) * 0xbf58476d1ce4e5b9ULL;
                hash = (hash ^ (hash >> 32) ^ static_cast<uint64_t>(key.c)) * 0x94d049bb133111ebULL;
                return static_cast<size_t>(hash ^ (hash >> 32));
            }
        };
        std::unordered_map<Triple, int64_t, Hash> numbers_;
    };
    """
    # Numbers for triples of numbers: equal ones have the same.
    cdef cppclass TripleTable:
        # The number of a triple; `n` if it is new.
        index_t find_or_add(index_t a, index_t b, index_t c, index_t n) except + nogil
        void clear() noexcept nogil
