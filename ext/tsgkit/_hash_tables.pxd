# Hash tables of C++ whose functions report that memory has run out. Cython takes `table[key] = value` of libcpp for one
# that cannot fail, and the process would end.
from tsgkit._types cimport index_t

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
