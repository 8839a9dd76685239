"""The CKY chart: inside, outside and Viterbi values of one sentence under any weighted grammar.

From words with lexical entries to values that derivations and posteriors are read off. This is what Python sees, and
where numbers are kept in the range of floats; the equations are those of ``_inside.pyx`` and ``_outside.pyx``, in a
semiring that is chosen once per sentence (``_semiring.pxd``), the arrays are in ``_chart_cells.pxd``.

Values are plain floats: every word's weights are multiplied by a factor, which cancels everywhere and keeps
the values of long spans within range. A sentence whose root comes out too small or whose values are too large is filled
again with other factors.
"""

cimport cython
from libc.math cimport INFINITY, exp, isfinite, log
from libcpp.vector cimport vector

from tsgkit._cell_closing cimport OpenCells
from tsgkit._chart_cells cimport (
    Cells,
    abandon_cells,
    bytes_in_use,
    cell_of,
    clear_cells,
    clear_scratch,
    inside_of,
    make_cells,
    outside_of,
)
from tsgkit._constraints cimport Constraints
from tsgkit._grammar_index cimport GrammarIndex, check_lexical
from tsgkit._inside cimport fill_inside
from tsgkit._outside cimport fill_outside
from tsgkit._pruning cimport Mask, Projection, mask_of
from tsgkit._types cimport index_t, position_t, symbol_t, weight_t
from tsgkit._work_limit cimport WorkLimit

cdef weight_t SMALLEST = 1e-250   # root values outside of this range are computed again with other factors
cdef weight_t LARGEST = 1e250
cdef weight_t NEAR_UNDERFLOW = 1e-100   # where values are so small, others may have become 0
cdef double LEAST_CHANGE = 0.5          # of the growth per word, for another attempt
cdef int MAX_TRIES = 6
cdef double DEFAULT_GROWTH = 3.0   # typical loss per word apart from its lexical weight, as a logarithm
cdef double LARGEST_GROWTH = 690.0
DEFAULT_MAX_BYTES = 1 << 30


@cython.final
cdef class Chart:
    """A chart for sentences under one grammar, one after the other; for one thread at a time.

    Parameters
    ----------
    grammar : GrammarIndex
    max_bytes : int
        The most memory that the values of one sentence may take. A sentence that needs more is given up:
        `is_over_budget` is set and `log_total` is -inf.
    """

    def __init__(self, GrammarIndex grammar not None, max_bytes=DEFAULT_MAX_BYTES):
        self.grammar = grammar
        self.log_total = -INFINITY
        self.limit = WorkLimit()
        make_cells(&self.cells, &grammar.table, max_bytes)

    @property
    def limit(self):
        """When to stop working at a sentence; the chart is empty after that."""
        return self.work_limit

    @limit.setter
    def limit(self, WorkLimit limit not None):
        self.work_limit = limit
        self.cells.limits = &limit.limits

    def fill(self, const index_t[::1] lexical_start, const symbol_t[::1] lexical_symbol,
             const weight_t[::1] lexical_weight, *, bint viterbi=False, Mask mask=None,
             Projection projection=None, OpenCells open_cells=None, Constraints constraints=None, growth=None):
        """Compute the inside (or Viterbi) values of a sentence.

        Parameters
        ----------
        lexical_start : array of int64, one per word and one more
            Word ``t`` may be made by ``lexical_symbol[lexical_start[t]:lexical_start[t + 1]]``.
        lexical_symbol : array of int32
            Ranks of symbols.
        lexical_weight : array of float
        viterbi : bool
            The best derivation instead of the sum.
        mask, projection : Mask, Projection, optional
            What a chart of a coarser grammar left, and how this grammar maps to it.
        open_cells : OpenCells, optional
            The cells to fill, with weights by which their binary rules are multiplied; all others stay empty. Unless
            given, all are filled.
        constraints : Constraints, optional
            Brackets that all derivations must have; a mask must come from a chart with the same ones.
        growth : float, optional
            Where to start looking for scale factors: minus the typical log weight per word.

        Returns
        -------
        float
            The log of the root's value, -inf where the sentence has no derivation.

        Raises
        ------
        OverflowError
            When no scale factors bring the values into the range of floats; far from any real grammar.
        MemoryError, OutOfTimeError, CancelledError
            When there is no memory left for the values, before `max_bytes` are reached, or by the limit. The chart is
            empty then.
        """
        cdef double per_word = DEFAULT_GROWTH if growth is None else growth
        if not -LARGEST_GROWTH <= per_word <= LARGEST_GROWTH:
            raise ValueError(f"growth {growth}: must be between {-LARGEST_GROWTH} and {LARGEST_GROWTH}")
        check_lexical(self.grammar, lexical_start, lexical_symbol, lexical_weight)
        if mask is not None and (projection is None or projection.fine is not self.grammar
                                 or projection.coarse is not mask.grammar
                                 or mask.n_words != lexical_start.shape[0] - 1):
            raise ValueError("the mask does not belong to this grammar and sentence")
        if mask is not None and projection.table.by_symbol and not mask.table.n_symbol_words:
            raise ValueError("the mask has labels only, and symbols are to be pruned by it")
        if open_cells is not None and open_cells.n_words != lexical_start.shape[0] - 1:
            raise ValueError("the open cells are those of another sentence")
        if constraints is not None and (
                constraints.grammar is not self.grammar or constraints.n_words != lexical_start.shape[0] - 1):
            raise ValueError("the constraints do not belong to this grammar and sentence")
        n_rows = constraints.n_rows if constraints is not None else lexical_start.shape[0]
        if mask is not None and mask.n_rows != n_rows:
            raise ValueError("the mask comes from a chart with other constraints")
        self.mask, self.projection, self.open_cells, self.constraints = mask, projection, open_cells, constraints
        self.cells.constraints = &constraints.table if constraints is not None else NULL
        self.cells.cell_weights = open_cells.weights.data() if open_cells is not None else NULL
        self.cells.mask = NULL
        self.cells.projection = NULL
        if mask is not None:
            self.cells.mask, self.cells.projection = &mask.table, &projection.table
        else:
            self.grammar.need_left()
        self.is_viterbi, self.has_outside, self.log_total = viterbi, False, -INFINITY
        self.n_fills += 1
        try:
            fill_scaled(self, lexical_start, lexical_symbol, lexical_weight, per_word)
        except BaseException:
            abandon_cells(&self.cells)
            raise
        if self.cells.total > 0.0:
            self.log_total = log(self.cells.total) - self.scale_prefix[self.cells.n_words]
        return self.log_total

    cdef int require_plain_cells(self) except -1:
        """Refuse to look for derivations in values that are not theirs alone."""
        if self.open_cells is not None and self.open_cells.has_weights:
            raise ValueError("the values of the chart are multiplied by weights of cells: it serves for pruning only")
        return 0

    def fill_outside(self, weight_t smallest_share=0.0):
        """Compute the outside values; `fill` must have found a derivation.

        Parameters
        ----------
        smallest_share : float
            A symbol over a span that has less than this share of the root's value gets the outside value 0 and
            hands nothing down. Max-marginals of what has more stay exact; a posterior loses at most the
            posteriors of those of its parents that were left out.
        """
        if self.cells.total <= 0.0 or self.cells.is_over_budget:
            raise ValueError("the chart holds no derivation")
        if self.has_outside and self.cells.smallest_share <= smallest_share:
            return
        self.has_outside = False
        self.cells.smallest_share = smallest_share
        try:
            with nogil:
                fill_outside(&self.cells, self.is_viterbi)
        except BaseException:
            clear_scratch(&self.cells)
            raise
        self.has_outside = True

    def make_mask(self, double threshold, *, bint symbols=True):
        """What survives pruning: labels with at least this share of the root's value, and symbols unless told not to.

        After `fill` the share is the posterior probability (a label's is the sum over its symbols), after
        ``fill(viterbi=True)`` the max-marginal: the best derivation through it relative to the best of all.
        """
        if not self.has_outside:
            raise ValueError("pruning needs outside values")
        return mask_of(self.grammar, &self.cells, self.is_viterbi, threshold, symbols)

    def inside_values(self, position_t start, position_t end):
        """The inside (or Viterbi) values of a span as ``{symbol: log value}``, scaling removed."""
        return log_values(self, start, end, False)

    def outside_values(self, position_t start, position_t end):
        """The outside values of a span as ``{symbol: log value}``, scaling removed."""
        if not self.has_outside:
            raise ValueError("there are no outside values yet")
        return log_values(self, start, end, True)

    @property
    def n_words(self):
        """The number of words of the last sentence."""
        return self.cells.n_words

    @property
    def is_over_budget(self):
        """Whether memory ran over the bound: the chart is not complete."""
        return self.cells.is_over_budget

    @property
    def smallest_share(self):
        """What has less than this share of the total has no outside value."""
        return self.cells.smallest_share

    @property
    def max_bytes(self):
        """The bound of memory."""
        return self.cells.max_bytes

    @property
    def mask_bytes(self):
        """The memory that a mask of the last sentence takes."""
        cdef index_t n_cells = self.cells.cell_begin.size()
        return 8 * n_cells * ((self.grammar.n_labels + 63) // 64 + (self.grammar.n_symbols + 63) // 64)

    @property
    def n_bytes(self):
        """The memory that the values of the last sentence take."""
        return bytes_in_use(&self.cells)


cdef dict log_values(Chart chart, position_t start, position_t end, bint outside):
    cdef const Cells* cells = &chart.cells
    if not 0 <= start < end <= cells.n_words:
        raise IndexError(f"span {start}..{end} is out of range: there are {cells.n_words} words")
    if cells.is_over_budget:
        return {}
    cdef index_t cell = cell_of(cells, start, end), position
    cdef symbol_t symbol
    cdef double value, scale = chart.scale_prefix[end] - chart.scale_prefix[start]
    if outside:
        scale = chart.scale_prefix[cells.n_words] - scale
    values = {}
    for position in range(cells.cell_begin[cell], cells.cell_end[cell]):
        symbol = cells.cell_symbols[position]
        value = outside_of(cells, start, end, symbol) if outside else inside_of(cells, start, end, symbol)
        if value > 0.0:
            values[cells.grammar.symbol_of[symbol]] = log(value) - scale
    return values


# ---- scale factors ---------------------------------------------------------------------------------------

cdef int fill_scaled(Chart chart, const index_t[::1] start, const symbol_t[::1] symbol, const weight_t[::1] weight,
                     double growth) except -1:
    """Fill the cells until the root's value is in range, or no better factors are found."""
    cdef Cells* cells = &chart.cells
    cdef position_t n_words = start.shape[0] - 1
    cdef index_t n_entries = symbol.shape[0]
    cdef const weight_t* weights = &weight[0] if n_entries else NULL
    cdef double change = 0.0
    cdef int _attempt
    cells.lexical_start.assign(&start[0], &start[0] + n_words + 1)
    cells.lexical_weight.resize(n_entries)
    cells.lexical_symbol.resize(n_entries)
    if n_entries:
        cells.lexical_symbol.assign(&symbol[0], &symbol[0] + n_entries)
    chart.scale_prefix.resize(n_words + 1)
    for _attempt in range(MAX_TRIES):
        with nogil:
            clear_cells(cells, n_words)
            scale_words(cells, weights, growth, &chart.scale_prefix)
            fill_inside(cells, chart.is_viterbi)
            change = needed_change(cells)
        if change == 0.0:
            break
        growth = min(max(growth + change, -LARGEST_GROWTH), LARGEST_GROWTH)
    if not isfinite(cells.largest) or 0.0 < cells.total < SMALLEST or (change != 0.0 and cells.total == 0.0):
        cells.total = 0.0
        raise OverflowError("the values of this sentence do not fit into the range of floats")
    return 0


cdef void scale_words(Cells* cells, const weight_t* weight, double growth, vector[double]* scale_prefix) noexcept nogil:
    """Multiply the weights of every word so that its largest becomes exp(growth)."""
    cdef position_t position
    cdef index_t entry
    cdef double largest, factor = exp(growth)
    scale_prefix[0][0] = 0.0
    for position in range(cells.n_words):
        largest = 0.0
        for entry in range(cells.lexical_start[position], cells.lexical_start[position + 1]):
            largest = max(largest, weight[entry])
        for entry in range(cells.lexical_start[position], cells.lexical_start[position + 1]):
            cells.lexical_weight[entry] = weight[entry] / largest * factor
        scale_prefix[0][position + 1] = scale_prefix[0][position]
        if largest > 0.0:
            scale_prefix[0][position + 1] += growth - log(largest)


cdef double needed_change(const Cells* cells) noexcept nogil:
    """How the growth per word must change so that values stay in range; 0 if they do, or if nothing helps."""
    if cells.is_over_budget or (SMALLEST < cells.total < LARGEST and isfinite(cells.largest)):
        return 0.0
    cdef double change = change_by_longest(cells)
    return change if change != 0.0 else change_against_underflow(cells)


cdef double change_by_longest(const Cells* cells) noexcept nogil:
    """How values shrink or grow with length: by the longest spans, or the longest before values are infinite."""
    cdef position_t length, last_length = 0
    cdef weight_t largest, last = 0.0
    for length in range(1, cells.n_words + 1):
        largest = largest_of_length(cells, length)
        if not isfinite(largest):
            return min(-(log(last) + 10.0) / last_length, -10.0 / length) if last > 0.0 else -300.0
        if largest > 0.0:
            last, last_length = largest, length
    return 0.0 if last == 0.0 or 1e-200 < last < LARGEST else -log(last) / last_length


cdef double change_against_underflow(const Cells* cells) noexcept nogil:
    """Where values may have become 0 because they were too small: as much as the largest values bear."""
    cdef position_t length
    cdef weight_t largest
    cdef double change = INFINITY
    if cells.smallest > NEAR_UNDERFLOW or cells.total >= SMALLEST:
        return 0.0
    for length in range(1, cells.n_words + 1):
        largest = largest_of_length(cells, length)
        if largest > 0.0:
            change = min(change, (log(LARGEST) - log(largest)) / length)
    return change if LEAST_CHANGE < change < INFINITY else 0.0


cdef weight_t largest_of_length(const Cells* cells, position_t length) noexcept nogil:
    """The largest inside value over the spans of a length."""
    cdef position_t start
    cdef index_t cell, position
    cdef weight_t largest = 0.0
    for start in range(cells.n_words - length + 1):
        cell = cell_of(cells, start, start + length)
        for position in range(cells.cell_begin[cell], cells.cell_end[cell]):
            largest = max(largest, inside_of(cells, start, start + length, cells.cell_symbols[position]))
    return largest
