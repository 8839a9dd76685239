// C++ allocations that fail when a test wants them to: preloaded, these take the place of the standard library's.
#include <cstdlib>
#include <new>

static long n_left = -1;

// Let all allocations fail after the next `n`; a negative number lets none fail.
extern "C" void fail_after(long n) { n_left = n; }

void* operator new(std::size_t size) {
    if (n_left == 0) throw std::bad_alloc();
    if (n_left > 0) --n_left;
    void* memory = std::malloc(size ? size : 1);
    if (!memory) throw std::bad_alloc();
    return memory;
}

void operator delete(void* memory) noexcept { std::free(memory); }

void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
