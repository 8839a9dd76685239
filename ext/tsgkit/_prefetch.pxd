# Having memory brought to the cache before it is read: a hint to the processor.
cdef extern from *:
    """
    #if defined(__GNUC__)
    // Without the empty assembly, GCC takes functions that do nothing but prefetch for functions without an effect, and
    // leaves out the calls.
    static inline __attribute__((always_inline, unused)) void tsgkit_prefetch(const void* address) {
        __builtin_prefetch(address);
        __asm__ volatile("");
    }
    #else
    static inline void tsgkit_prefetch(const void*) {}
    #endif
    """
    void prefetch "tsgkit_prefetch"(const void* address) noexcept nogil
