# Draws from a numpy bit generator without the GIL; whoever draws holds the generator's lock.
from cpython.pycapsule cimport PyCapsule_GetPointer
from numpy.random cimport bitgen_t


cdef inline bitgen_t* bitgen_of(object bit_generator) except NULL:
    return <bitgen_t*>PyCapsule_GetPointer(bit_generator.capsule, "BitGenerator")


cdef inline double uniform(bitgen_t* generator) noexcept nogil:
    """A number in [0, 1)."""
    return generator.next_double(generator.state)
