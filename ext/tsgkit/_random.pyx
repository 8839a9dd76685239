"""Streams of random numbers for Python, as the samplers have them."""

from libc.stdint cimport uint64_t


cdef class Stream:
    """A stream of random numbers: the same seed gives the same numbers everywhere.

    Parameters
    ----------
    seed : int
    iteration, number : int
        Streams of the same seed that differ in one of these are independent of each other.
    """

    def __init__(self, uint64_t seed, uint64_t iteration=0, uint64_t number=0):
        self.rng = Rng(seed, iteration, number)

    def uniform(self):
        """A number in [0, 1)."""
        return self.rng.uniform()
