// Allocations that fail when a test wants them to. Preloaded, these functions take the place of those of glibc and of the
// standard library of C++. All of C++ count, of the others those that are not too small.
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t number, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

static std::atomic<long> n_left{-1};      // allocations before the one that fails; negative: none will
static std::atomic<bool> stays{false};    // whether all after it fail, too
static std::atomic<size_t> smallest{0};   // those of fewer bytes do not count

static bool fails() {
    long before = n_left.load(std::memory_order_relaxed);
    for (;;) {
        if (before < 0) return false;
        if (before == 0 && stays.load(std::memory_order_relaxed)) break;
        if (n_left.compare_exchange_weak(before, before - 1)) {
            if (before == 0) break;
            return false;
        }
    }
    errno = ENOMEM;
    return true;
}

static bool fails(size_t size) { return size >= smallest.load(std::memory_order_relaxed) && fails(); }

void* operator new(std::size_t size) {
    void* memory = fails() ? nullptr : __libc_malloc(size ? size : 1);
    if (!memory) throw std::bad_alloc();
    return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

extern "C" {

// Let the allocation after the next `n` fail, and with `all_later` those after it; but for those of C++, they count from
// `least` bytes on.
void fail_after(long n, size_t least, int all_later) {
    smallest = least;
    stays = all_later != 0;
    n_left = n;
}

// How many allocations are left before one fails; negative: it has failed, or none was to.
long allocations_left() { return n_left; }

void* malloc(size_t size) { return fails(size) ? nullptr : __libc_malloc(size); }
void* calloc(size_t number, size_t size) { return fails(number * size) ? nullptr : __libc_calloc(number, size); }
void* realloc(void* memory, size_t size) { return fails(size) ? nullptr : __libc_realloc(memory, size); }
void* memalign(size_t alignment, size_t size) { return fails(size) ? nullptr : __libc_memalign(alignment, size); }
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** memory, size_t alignment, size_t size) {
    *memory = memalign(alignment, size);
    return *memory ? 0 : ENOMEM;
}
}
