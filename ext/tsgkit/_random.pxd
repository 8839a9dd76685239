# Random numbers without the GIL: streams of our own for samplers, numpy's bit generators for the chart.
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int64_t, uint64_t
from libcpp.vector cimport vector
from numpy.random cimport bitgen_t

cdef extern from "stream.hpp" namespace "tsgkit" nogil:
    # A stream depends on (seed, iteration, number) alone, so that threads can draw in any order.
    cdef cppclass Rng "tsgkit::Stream":
        Rng()
        Rng(uint64_t seed, uint64_t iteration, uint64_t number)
        double uniform()                                # in [0, 1)
        uint64_t below(uint64_t n)                      # in 0 .. n - 1
        double gamma(double shape)                      # rate 1
        double beta(double a, double b)
        int64_t binomial(int64_t n, double probability)

    # The numbers 0 .. n_items - 1 in a random order.
    vector[int64_t] random_order(int64_t n_items, Rng rng) except +


# What a stream is for: every purpose of every sampler has its own streams, numbered `purpose << 40 | item`.
cdef enum Purpose:
    # Derivations with substitution and insertion.
    RNG_TREE = 0
    RNG_FREEZE = 1
    RNG_PROPOSE = 2
    RNG_TREE_ORDER = 3
    RNG_HYPER = 4
    RNG_STOP = 5
    RNG_START = 6
    RNG_SITE = 7
    RNG_SITE_ORDER = 8
    RNG_TYPE = 9
    RNG_INSERTION = 10
    RNG_FREEZE_OPEN = 11
    RNG_OPEN_TREE = 12
    # Subcategories.
    RNG_SPLIT_TREE = 32
    RNG_SPLIT_TREE_ORDER = 33
    RNG_SPLIT_HYPER = 34
    RNG_SPLIT_START = 35
    RNG_SPLIT_TYPE = 36
    RNG_SPLIT_MERGE = 37
    # Derivations of refined trees.
    RNG_REFINED_TREE = 48
    RNG_REFINED_TREE_ORDER = 49
    RNG_REFINED_HYPER = 50
    RNG_REFINED_STOP = 51
    RNG_REFINED_START = 52
    RNG_REFINED_SITE = 53
    RNG_REFINED_SITE_ORDER = 54
    RNG_REFINED_FREEZE = 55
    RNG_REFINED_PROPOSE = 56
    RNG_REFINED_INSERTION = 57
    RNG_REFINED_TYPE = 58
    RNG_REFINED_FREEZE_RULES = 59


cdef inline Rng rng_for(uint64_t seed, uint64_t iteration, Purpose purpose, uint64_t item) noexcept nogil:
    return Rng(seed, iteration, <uint64_t>purpose << 40 | item)


cdef class Stream:
    cdef Rng rng


cdef inline bitgen_t* bitgen_of(object bit_generator) except NULL:
    return <bitgen_t*>PyCapsule_GetPointer(bit_generator.capsule, "BitGenerator")


cdef inline double uniform(bitgen_t* generator) noexcept nogil:
    """A number in [0, 1); whoever draws holds the generator's lock."""
    return generator.next_double(generator.state)
