// Allocations that fail when a test wants them to. Preloaded, these functions take the place of those of glibc and of the
// standard library of C++. All of C++ count, of the others those that are not too small. They can also note from where
// they are called, so that a test can choose allocations by their call stacks.
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <execinfo.h>
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

static const int DEPTH = 16;                    // the innermost frames of a stack, by which it is known
static std::atomic<uint64_t*> stacks{nullptr};  // where stacks are noted
static std::atomic<long> n_stacks{0};
static long most_stacks = 0;
static thread_local bool is_noting = false;  // what noting allocates does not count

static void note_stack() {
    is_noting = true;
    void* frames[DEPTH];
    const int n_frames = backtrace(frames, DEPTH);
    uint64_t hash = 1469598103934665603u;
    for (int frame = 0; frame < n_frames; ++frame) {
        hash = (hash ^ reinterpret_cast<uintptr_t>(frames[frame])) * 1099511628211u;
    }
    const long number = n_stacks.fetch_add(1);
    if (number < most_stacks) stacks.load()[number] = hash;
    is_noting = false;
}

static bool fails() {
    if (stacks.load(std::memory_order_relaxed)) {
        if (!is_noting) note_stack();
        return false;
    }
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

// From now on, note a number for the stack of each allocation, of `most` at most, and let none fail; nullptr ends that.
void note_stacks(uint64_t* where, long most, size_t least) {
    n_left = -1;
    smallest = least;
    most_stacks = most;
    n_stacks = 0;
    stacks = where;
}

// How many allocations there have been since then.
long stacks_noted() { return n_stacks; }

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
