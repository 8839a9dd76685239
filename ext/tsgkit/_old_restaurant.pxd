# What compiled modules use of stream.hpp and restaurant.hpp.
from libc.stdint cimport uint64_t
from libcpp.pair cimport pair
from libcpp.vector cimport vector

from tsgkit._types cimport index_t, symbol_t

cdef extern from "stream.hpp" namespace "tsgkit" nogil:
    cdef cppclass CppStream "tsgkit::Stream":
        CppStream()
        CppStream(uint64_t seed, uint64_t iteration, uint64_t number)
        double uniform()

cdef extern from "restaurant.hpp" namespace "tsgkit" nogil:
    cdef cppclass Tables:
        symbol_t n_customers
        symbol_t n_tables
        vector[pair[symbol_t, symbol_t]] by_size
        void grow(symbol_t size)

    cdef cppclass House:
        double discount
        double strength
        index_t n_customers
        index_t n_tables
        double old_weight(const Tables& tables)
        double new_weight()
        double denominator()
        void grow(Tables& tables, symbol_t size)
        symbol_t seat(Tables& tables, double base, CppStream& stream)
        symbol_t unseat(Tables& tables, CppStream& stream)

    double log_seating(const House& house, const vector[index_t]& counts)
    void add_sizes(const Tables& tables, vector[index_t]& counts)

    cdef cppclass HyperSums:
        void draw(const House& house, const vector[index_t]& counts, CppStream& stream)
        double draw_discount(CppStream& stream)
        double draw_strength(CppStream& stream)
