# Functions on the hash tables of C++ in the place of those that Cython takes for ones that cannot fail: where memory
# runs out, `table[key] = value` of libcpp ends the process.
cdef extern from *:
    """
    template <class Table, class Key, class Value>
    inline void tsgkit_put(Table& table, const Key& key, const Value& value) { table[key] = value; }
    """
    # table[key] = value
    void put "tsgkit_put"[Table, Key, Value](Table& table, const Key& key, const Value& value) except + nogil
