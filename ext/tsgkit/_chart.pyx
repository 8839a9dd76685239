"""The CKY chart: inside, outside and Viterbi values of one sentence under any weighted grammar.

With ``I(x, i, j)`` the inside value of symbol ``x`` over the words ``i .. j``,

    I(x, i, j) = sum_{x -> y z} w  sum_k I(y, i, k) I(z, k, j)  +  sum_{x -> y} w I(y, i, j)

where the last sum runs over unary rules and bridges and is closed exactly, cycles included. At a span, left
times right is summed over the split points first, on vectors that lie next to each other in memory, and
every rule is then applied once. With a mask from a coarser chart, only blocks of rules whose treebank labels
survived are touched. Viterbi values have *max* in place of *sum*.

Values are plain floats: every word's weights are multiplied by a factor of its own, which cancels
everywhere and keeps the values of long spans within range.
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, exp, fabs, isfinite, log

cdef weight_t SMALLEST = 1e-250   # root values outside of this range are computed again with other factors
cdef weight_t LARGEST = 1e250
cdef int MAX_TRIES = 6
cdef double DEFAULT_GROWTH = 3.0   # typical loss per word apart from its lexical weight, as a logarithm
cdef double LARGEST_GROWTH = 690.0
cdef double CONVERGED = 1e-15
cdef int MAX_SWEEPS = 100000
DEFAULT_MAX_BYTES = 1 << 30


cdef bits_t inner_positions(position_t start, position_t end, index_t word) noexcept nogil:
    """The split points of a span, which are strictly inside it, as flags in one of the words of positions."""
    cdef bits_t flags = ~<bits_t>0
    if word == start >> 6:
        flags &= flags << (start & 63) << 1
    if word == end >> 6:
        flags &= (<bits_t>1 << (end & 63)) - 1
    return flags


@cython.final
cdef class Mask:
    """Which labels and symbols of a grammar may stand where, as a chart of that grammar left it."""

    cdef bint has_label(self, index_t cell, symbol_t label) noexcept nogil:
        return (self.label_bits[cell * self.n_label_words + (label >> 6)] >> (label & 63)) & 1

    cdef bint has_symbol(self, index_t cell, symbol_t symbol) noexcept nogil:
        return (self.symbol_bits[cell * self.n_symbol_words + (symbol >> 6)] >> (symbol & 63)) & 1

    def labels_at(self, position_t start, position_t end):
        """The labels that may stand over a span."""
        if not 0 <= start < end <= self.n_words:
            raise IndexError(f"no span {start}..{end} in {self.n_words} words")
        cdef index_t cell = <index_t>start * (self.n_words + 1) + end
        return [label for label in range(64 * self.n_label_words) if self.has_label(cell, label)]

    def count(self):
        """How many pairs of a span and a label are left."""
        cdef index_t number = 0
        cdef bits_t word
        for word in self.label_bits:
            while word:
                word &= word - 1
                number += 1
        return number


@cython.final
cdef class Projection:
    """How a fine grammar maps to a coarse one.

    Parameters
    ----------
    fine, coarse : GrammarIndex
    label_map : array of int
        For every label of the fine grammar, that of the coarse one.
    symbol_map : array of int, optional
        For every symbol of the fine grammar, one of the coarse grammar that prunes it, or -1 where only the
        label does. Unless given, labels alone are pruned.
    """

    def __init__(self, GrammarIndex fine, GrammarIndex coarse, label_map, symbol_map=None):
        label_map = np.asarray(label_map, dtype=np.int32)
        if label_map.shape != (fine.n_labels,) or (label_map < 0).any() or (label_map >= coarse.n_labels).any():
            raise ValueError("the label map does not fit the two grammars")
        self.fine, self.coarse = fine, coarse
        order = np.argsort(label_map, kind="stable").astype(np.int32)
        self.expansion = order
        self.expansion_start = np.searchsorted(label_map[order], np.arange(coarse.n_labels + 1)).astype(np.int64)
        self.by_symbol = symbol_map is not None
        coarse_symbol = np.full(fine.n_symbols, -1, dtype=np.int32)
        if symbol_map is not None:
            symbol_map = np.asarray(symbol_map, dtype=np.int32)
            if symbol_map.shape != (fine.n_symbols,) or (symbol_map < -1).any() or (
                    symbol_map >= coarse.n_symbols).any():
                raise ValueError("the symbol map does not fit the two grammars")
            mapped = np.where(symbol_map >= 0, coarse.rank_of_symbol[symbol_map], -1)
            coarse_symbol[fine.rank_of_symbol] = mapped
        self.coarse_symbol = coarse_symbol
        self.find_block_symbols()

    def find_block_symbols(self):
        cdef const GrammarTable* grammar = &self.fine.table
        cdef index_t n_blocks = grammar.block_start[grammar.n_labels], block, position
        self.block_symbol = np.full(n_blocks + 1, -1, dtype=np.int32)
        for block in range(n_blocks):
            self.block_symbol[block] = self.coarse_symbol[grammar.block_parent[grammar.block_parent_start[block]]]
            for position in range(grammar.block_parent_start[block], grammar.block_parent_start[block + 1]):
                if self.coarse_symbol[grammar.block_parent[position]] != self.block_symbol[block]:
                    self.block_symbol[block] = -1


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

    def __init__(self, GrammarIndex grammar, max_bytes=DEFAULT_MAX_BYTES):
        self.grammar = grammar
        self.max_bytes = max_bytes
        self.log_total = -INFINITY
        self.sums.assign(grammar.n_symbols, 0.0)
        self.cell_inside.assign(grammar.n_symbols, 0.0)
        self.touched.assign((grammar.n_symbols + 63) // 64, 0)
        self.cycle_before.assign(grammar.table.largest_cycle, 0.0)
        self.cycle_after.assign(grammar.table.largest_cycle, 0.0)

    def fill(self, const index_t[::1] lexical_start, const symbol_t[::1] lexical_symbol,
             const weight_t[::1] lexical_weight, *, bint viterbi=False, Mask mask=None,
             Projection projection=None, growth=None):
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
        """
        cdef position_t n_words = lexical_start.shape[0] - 1
        cdef double per_word = DEFAULT_GROWTH if growth is None else growth, change = 0.0
        cdef const weight_t* weights = NULL
        if not -LARGEST_GROWTH <= per_word <= LARGEST_GROWTH:
            raise ValueError(f"growth {growth}: must be between {-LARGEST_GROWTH} and {LARGEST_GROWTH}")
        self.check_lexical(lexical_start, lexical_symbol, lexical_weight)
        if mask is not None and (projection is None or projection.fine is not self.grammar
                                 or projection.coarse is not mask.grammar or mask.n_words != n_words):
            raise ValueError("the mask does not belong to this grammar and sentence")
        self.mask, self.projection, self.is_masked = mask, projection, mask is not None
        self.is_viterbi, self.has_outside = viterbi, False
        self.lexical_start.assign(&lexical_start[0], &lexical_start[0] + n_words + 1)
        self.lexical_weight.assign(lexical_weight.shape[0], 0.0)
        if lexical_symbol.shape[0]:
            self.lexical_symbol.assign(&lexical_symbol[0], &lexical_symbol[0] + lexical_symbol.shape[0])
            weights = &lexical_weight[0]
        self.n_fills += 1
        cdef int _attempt
        for _attempt in range(MAX_TRIES):
            with nogil:
                self.clear(n_words)
                self.scale_words(weights, per_word)
                self.inside_pass()
            change = self.needed_change()
            if change == 0.0:
                break
            per_word = min(max(per_word + change, -LARGEST_GROWTH), LARGEST_GROWTH)
        if not isfinite(self.total) or (change != 0.0 and self.total == 0.0):
            self.total = 0.0
            raise OverflowError("the values of this sentence do not fit into the range of floats")
        if self.total > 0.0:
            self.log_total = log(self.total) - self.scale_prefix[n_words]
        return self.log_total

    def check_lexical(self, const index_t[::1] start, const symbol_t[::1] symbol, const weight_t[::1] weight):
        cdef index_t n_entries = symbol.shape[0], entry
        cdef position_t position
        if start.shape[0] < 2:
            raise ValueError("a sentence has at least one word")
        if start[0] != 0 or start[start.shape[0] - 1] != n_entries or weight.shape[0] != n_entries:
            raise ValueError("the lexical entries do not fit together")
        for position in range(start.shape[0] - 1):
            if start[position] > start[position + 1]:
                raise ValueError("the lexical entries are not in order")
        for entry in range(n_entries):
            if not 0 <= symbol[entry] < self.grammar.n_symbols:
                raise ValueError(f"there is no symbol {symbol[entry]}")
            if not (weight[entry] > 0.0 and isfinite(weight[entry])):
                raise ValueError(f"weight {weight[entry]} is not a positive number")

    cdef void scale_words(self, const weight_t* weight, double growth) noexcept nogil:
        """Multiply the weights of every word so that its largest becomes exp(growth)."""
        cdef position_t position
        cdef index_t entry
        cdef double largest, factor = exp(growth)
        self.scale_prefix.assign(self.n_words + 1, 0.0)
        for position in range(self.n_words):
            largest = 0.0
            for entry in range(self.lexical_start[position], self.lexical_start[position + 1]):
                largest = max(largest, weight[entry])
            for entry in range(self.lexical_start[position], self.lexical_start[position + 1]):
                self.lexical_weight[entry] = weight[entry] / largest * factor
            self.scale_prefix[position + 1] = self.scale_prefix[position]
            if largest > 0.0:
                self.scale_prefix[position + 1] += growth - log(largest)

    def needed_change(self):
        """How the growth per word must change so that values stay in range; 0 if they do."""
        if SMALLEST < self.total < LARGEST or self.is_over_budget:
            return 0.0
        # The longest spans show how values shrink or grow with length.
        cdef position_t length, start
        cdef index_t cell, position
        cdef weight_t largest, value
        cdef bint overflows = False
        for length in range(self.n_words, 0, -1):
            largest = 0.0
            for start in range(self.n_words - length + 1):
                cell = self.cell_of(start, start + length)
                for position in range(self.cell_begin[cell], self.cell_end[cell]):
                    value = self.inside_of(start, start + length, self.cell_symbols[position])
                    largest = max(largest, value)
            if not isfinite(largest):
                overflows = True
            elif overflows and largest > 0.0:
                # Longer spans are larger still.
                return -(log(largest) + 10.0) / length
            elif largest > 0.0:
                return 0.0 if 1e-200 < largest < LARGEST else -log(largest) / length
        return -300.0 if overflows else 0.0

    cdef index_t cell_of(self, position_t start, position_t end) noexcept nogil:
        return <index_t>start * (self.n_words + 1) + end

    cdef weight_t inside_of(self, position_t start, position_t end, symbol_t symbol) noexcept nogil:
        cdef symbol_t slot = self.left_slot[<index_t>start * self.grammar.n_symbols + symbol]
        return self.left_inside[slot * self.stride + end] if slot >= 0 else 0.0

    cdef weight_t outside_of(self, position_t start, position_t end, symbol_t symbol) noexcept nogil:
        cdef symbol_t slot = self.left_slot[<index_t>start * self.grammar.n_symbols + symbol]
        return self.left_outside[slot * self.stride + end] if slot >= 0 else 0.0

    cdef weight_t lexical_of(self, position_t start, symbol_t symbol) noexcept nogil:
        cdef index_t entry
        cdef weight_t value = 0.0
        for entry in range(self.lexical_start[start], self.lexical_start[start + 1]):
            if self.lexical_symbol[entry] == symbol:
                value += self.lexical_weight[entry]
        return value

    cdef index_t bytes_in_use(self) noexcept nogil:
        # Outside values, if they are wanted later, take as much again as inside values.
        cdef index_t n_values = 2 * self.stride * (self.n_left_slots + self.n_right_slots)
        # What a longer sentence before this one has left is not counted: it was within the bound.
        cdef index_t n_places = 2 * <index_t>(self.n_words + 1) * self.grammar.n_symbols
        return 8 * (n_values + self.n_left_slots + self.n_right_slots) + 4 * n_places + 8 * <index_t>(
            self.left_alive.size() + self.right_alive.size() + 2 * self.cell_begin.size() + 2 * self.cell_end.size()
        ) + sizeof(LiveBlock) * <index_t>self.live_blocks.size()

    cdef int clear(self, position_t n_words) except -1 nogil:
        cdef index_t n_rows = n_words + 1
        cdef index_t n_flags = n_rows * self.grammar.table.n_labels
        self.n_words = n_words
        self.stride = (n_rows + 3) // 4 * 4
        self.n_position_words = (n_rows + 63) // 64
        self.n_left_slots = self.n_right_slots = 0
        self.total = 0.0
        self.log_total = -INFINITY
        self.left_low.clear()
        self.left_high.clear()
        self.right_low.clear()
        self.right_high.clear()
        self.left_inside.clear()
        self.right_inside.clear()
        self.cell_symbols.clear()
        self.row_symbols.resize(n_rows)
        cdef index_t row
        for row in range(n_rows):
            self.row_symbols[row].clear()
        self.label_stamp.assign(self.grammar.table.n_labels, -1)
        self.last_stamp = -1
        self.is_over_budget = (
            8 * n_rows * self.grammar.n_symbols + 16 * n_flags * self.n_position_words + 32 * n_rows * n_rows
            > self.max_bytes)
        self.clear_slots(0 if self.is_over_budget else n_rows * self.grammar.n_symbols)
        if self.is_over_budget:
            self.left_alive.clear()
            self.right_alive.clear()
            self.cell_begin.clear()
            self.cell_end.clear()
            self.live_blocks.clear()
            self.live_begin.clear()
            self.live_end.clear()
            return 0
        self.left_alive.assign(n_flags * self.n_position_words, 0)
        self.right_alive.assign(n_flags * self.n_position_words, 0)
        self.cell_begin.assign(n_rows * n_rows, 0)
        self.cell_end.assign(n_rows * n_rows, 0)
        self.live_blocks.clear()
        self.live_begin.assign(n_rows * n_rows, 0)
        self.live_end.assign(n_rows * n_rows, 0)
        return 0

    cdef int clear_slots(self, index_t n_places) except -1 nogil:
        """Forget where the slots of the last sentence were; there are far fewer of them than places."""
        cdef index_t slot
        for slot in range(<index_t>self.left_places.size()):
            self.left_slot[self.left_places[slot]] = -1
        for slot in range(<index_t>self.right_places.size()):
            self.right_slot[self.right_places[slot]] = -1
        self.left_places.clear()
        self.right_places.clear()
        if <index_t>self.left_slot.size() < n_places:
            self.left_slot.resize(n_places, -1)
            self.right_slot.resize(n_places, -1)
        return 0

    # ---- inside ------------------------------------------------------------------------------------------

    cdef void inside_pass(self) noexcept nogil:
        cdef position_t length, start
        if self.is_over_budget:
            return
        for length in range(1, self.n_words + 1):
            for start in range(self.n_words - length + 1):
                self.fill_cell(start, start + length)
                if self.bytes_in_use() > self.max_bytes:
                    self.is_over_budget = True
                    return
        self.total = self.inside_of(0, self.n_words, self.grammar.table.root)

    cdef void fill_cell(self, position_t start, position_t end) noexcept nogil:
        cdef index_t cell = self.cell_of(start, end), entry
        cdef weight_t value
        self.cell_begin[cell] = self.cell_symbols.size()
        if self.is_masked:
            self.collect_allowed_labels(cell)
        if end == start + 1:
            for entry in range(self.lexical_start[start], self.lexical_start[end]):
                # Entries of the same symbol are one rule with the sum of their weights, for Viterbi as well.
                value = self.sums[self.lexical_symbol[entry]] if self.is_viterbi else 0.0
                self.add(self.lexical_symbol[entry], value + self.lexical_weight[entry])
        elif self.is_masked:
            self.combine_allowed(start, end)
        else:
            self.combine_all(start, end)
        self.close_cell(start, end)
        self.cell_end[cell] = self.cell_symbols.size()

    cdef void add(self, symbol_t symbol, weight_t value) noexcept nogil:
        if not self.is_viterbi:
            self.sums[symbol] += value
        elif value > self.sums[symbol]:
            self.sums[symbol] = value
        self.touch(symbol)

    cdef void touch(self, symbol_t symbol) noexcept nogil:
        self.touched[symbol >> 6] |= <bits_t>1 << (symbol & 63)

    cdef void combine_all(self, position_t start, position_t end) noexcept nogil:
        """Every pair of symbols that stand left and right of a split point and are children of a rule."""
        cdef const GrammarTable* grammar = &self.grammar.table
        cdef const symbol_t* left_slots = &self.left_slot[<index_t>start * grammar.n_symbols]
        cdef const symbol_t* right_slots = &self.right_slot[<index_t>end * grammar.n_symbols]
        cdef const weight_t* left_values
        cdef const weight_t* right_values
        cdef symbol_t left
        cdef index_t position, pair, rule, left_slot, right_slot
        cdef position_t left_low, left_high, low, high
        cdef weight_t value
        cdef bint is_viterbi = self.is_viterbi
        for position in range(<index_t>self.row_symbols[start].size()):
            left = self.row_symbols[start][position]
            left_slot = left_slots[left]
            left_low, left_high = self.left_low[left_slot], self.left_high[left_slot]
            left_values = &self.left_inside[left_slot * self.stride]
            for pair in range(grammar.pair_start[left], grammar.pair_start[left + 1]):
                right_slot = right_slots[grammar.pair_right[pair]]
                if right_slot < 0:
                    continue
                low = max(left_low, self.right_low[right_slot])
                high = min(left_high, self.right_high[right_slot])
                if low > high:
                    continue
                right_values = &self.right_inside[right_slot * self.stride]
                if is_viterbi:
                    value = max_product(left_values + low, right_values + low, high - low + 1)
                else:
                    value = dot_product(left_values + low, right_values + low, high - low + 1)
                if value > 0.0:
                    for rule in range(grammar.pair_rule_start[pair], grammar.pair_rule_start[pair + 1]):
                        self.add(grammar.rule_parent[rule], grammar.rule_weight[rule] * value)

    cdef void combine_allowed(self, position_t start, position_t end) noexcept nogil:
        """Only the treebank rules of labels that may stand here, with their children where those do."""
        cdef const GrammarTable* grammar = &self.grammar.table
        cdef index_t n_words = self.n_position_words, word = start >> 6, cell = self.cell_of(start, end)
        cdef index_t position, group, block
        cdef const bits_t* left_alive = &self.left_alive[start * <index_t>grammar.n_labels * n_words]
        cdef const bits_t* right_alive = &self.right_alive[end * <index_t>grammar.n_labels * n_words]
        cdef bits_t inside = inner_positions(start, end, word), left, both
        cdef bint is_narrow = end >> 6 == word   # all split points are in one word of flags
        cdef symbol_t coarse
        cdef LiveBlock live
        self.live_begin[cell] = self.live_blocks.size()
        for position in range(<index_t>self.cell_labels.size()):
            live.label = self.cell_labels[position]
            for group in range(grammar.group_start[live.label], grammar.group_start[live.label + 1]):
                left = left_alive[grammar.group_left_label[group] * n_words + word] & inside
                if is_narrow and not left:
                    continue
                for block in range(grammar.group_block_start[group], grammar.group_block_start[group + 1]):
                    coarse = self.projection.block_symbol[block]
                    if coarse >= 0 and not self.mask.has_symbol(cell, coarse):
                        continue
                    if is_narrow:
                        both = left & right_alive[grammar.block_right_label[block] * n_words + word]
                        if not both:
                            continue
                        live.low, live.high = 64 * word + lowest_bit(both), 64 * word + highest_bit(both)
                    elif not self.split_range(block, start, end, &live.low, &live.high):
                        continue
                    live.block = block
                    self.live_blocks.push_back(live)
                    self.combine_block(block, start, end, live.low, live.high)
        self.live_end[cell] = self.live_blocks.size()

    cdef bint split_range(self, index_t block, position_t start, position_t end,
                          position_t* low, position_t* high) noexcept nogil:
        """The first and the last split point at which both child labels of a treebank rule are alive."""
        cdef index_t n_words = self.n_position_words, n_labels = self.grammar.table.n_labels, word
        cdef const bits_t* left = &self.left_alive[
            (start * n_labels + self.grammar.table.block_left_label[block]) * n_words]
        cdef const bits_t* right = &self.right_alive[
            (end * n_labels + self.grammar.table.block_right_label[block]) * n_words]
        cdef bits_t both
        low[0] = -1
        for word in range(start >> 6, (end >> 6) + 1):
            both = left[word] & right[word] & inner_positions(start, end, word)
            if both:
                if low[0] < 0:
                    low[0] = 64 * word + lowest_bit(both)
                high[0] = 64 * word + highest_bit(both)
        return low[0] >= 0

    cdef void combine_block(self, index_t block, position_t start, position_t end,
                            position_t low, position_t high) noexcept nogil:
        cdef const GrammarTable* grammar = &self.grammar.table
        cdef const symbol_t* left_slots = &self.left_slot[<index_t>start * grammar.n_symbols]
        cdef const symbol_t* right_slots = &self.right_slot[<index_t>end * grammar.n_symbols]
        cdef const weight_t* left_values
        cdef const weight_t* right_values
        cdef weight_t* sums = self.sums.data()
        cdef index_t run, pair, rule, left_slot, right_slot
        cdef position_t left_low, left_high, first, last
        cdef weight_t value
        cdef bint has_value = False, is_viterbi = self.is_viterbi
        for run in range(grammar.run_start[block], grammar.run_start[block + 1]):
            left_slot = left_slots[grammar.run_left[run]]
            if left_slot < 0:
                continue
            left_low, left_high = max(low, self.left_low[left_slot]), min(high, self.left_high[left_slot])
            left_values = &self.left_inside[left_slot * self.stride]
            if left_low > left_high or (left_low == left_high and left_values[left_low] == 0.0):
                continue
            for pair in range(grammar.run_pair_start[run], grammar.run_pair_start[run + 1]):
                right_slot = right_slots[grammar.block_pair_right[pair]]
                if right_slot < 0:
                    continue
                first, last = max(left_low, self.right_low[right_slot]), min(left_high, self.right_high[right_slot])
                if first > last:
                    continue
                right_values = &self.right_inside[right_slot * self.stride]
                if is_viterbi:
                    value = max_product(left_values + first, right_values + first, last - first + 1)
                else:
                    value = dot_product(left_values + first, right_values + first, last - first + 1)
                if value > 0.0:
                    has_value = True
                    for rule in range(grammar.block_rule_start[pair], grammar.block_rule_start[pair + 1]):
                        if not is_viterbi:
                            sums[grammar.block_rule_parent[rule]] += grammar.block_rule_weight[rule] * value
                        else:
                            sums[grammar.block_rule_parent[rule]] = max(
                                sums[grammar.block_rule_parent[rule]], grammar.block_rule_weight[rule] * value)
        if has_value:
            # A parent without a sum does no harm.
            for rule in range(grammar.block_parent_start[block], grammar.block_parent_start[block + 1]):
                self.touch(grammar.block_parent[rule])

    cdef void collect_allowed_labels(self, index_t cell) noexcept nogil:
        cdef index_t word, position
        cdef bits_t flags
        cdef symbol_t coarse
        self.cell_labels.clear()
        for word in range(self.mask.n_label_words):
            flags = self.mask.label_bits[cell * self.mask.n_label_words + word]
            while flags:
                coarse = 64 * word + lowest_bit(flags)
                flags &= flags - 1
                for position in range(
                        self.projection.expansion_start[coarse], self.projection.expansion_start[coarse + 1]):
                    self.label_stamp[self.projection.expansion[position]] = cell
                    self.cell_labels.push_back(self.projection.expansion[position])

    cdef bint is_allowed(self, index_t cell, symbol_t symbol) noexcept nogil:
        cdef symbol_t coarse, label = self.grammar.table.label[symbol]
        if not self.is_masked:
            return True
        # A symbol without a label of its own stands where those do that it has bridges to.
        if label < self.grammar.table.n_treebank_labels and self.label_stamp[label] != cell:
            return False
        if not self.projection.by_symbol:
            return True
        coarse = self.projection.coarse_symbol[symbol]
        return coarse < 0 or self.mask.has_symbol(cell, coarse)

    cdef void close_cell(self, position_t start, position_t end) noexcept nogil:
        """Add unary rules and bridges, children before parents, and store what the cell holds."""
        cdef index_t cell = self.cell_of(start, end), word
        cdef symbol_t symbol
        cdef weight_t value
        # The parents that are touched on the way have higher ranks.
        for word in range(<index_t>self.touched.size()):
            while self.touched[word]:
                symbol = 64 * word + lowest_bit(self.touched[word])
                if self.grammar.table.cycle_of[symbol] >= 0:
                    self.close_cycle(self.grammar.table.cycle_of[symbol], start, end)
                    continue
                self.touched[word] &= self.touched[word] - 1
                value = self.sums[symbol]
                self.sums[symbol] = 0.0
                if value > 0.0 and self.is_allowed(cell, symbol):
                    self.emit(start, end, symbol, value)

    cdef void close_cycle(self, symbol_t cycle, position_t start, position_t end) noexcept nogil:
        cdef const GrammarTable* grammar = &self.grammar.table
        cdef index_t cell = self.cell_of(start, end)
        cdef symbol_t first = grammar.cycle_first[cycle], size = grammar.cycle_size[cycle], row, column, symbol
        cdef const weight_t* closure
        cdef weight_t value, product
        cdef bint all_allowed = True
        for row in range(size):
            symbol = first + row
            self.cycle_before[row] = self.sums[symbol]
            self.sums[symbol] = 0.0
            self.touched[symbol >> 6] &= ~(<bits_t>1 << (symbol & 63))
            if not self.is_allowed(cell, symbol):
                self.cycle_before[row] = 0.0
                all_allowed = False
        if all_allowed:
            closure = &grammar.cycle_sums[grammar.cycle_matrix[cycle]]
            if self.is_viterbi:
                closure = &grammar.cycle_best[grammar.cycle_matrix[cycle]]
            for row in range(size):
                value = 0.0
                for column in range(size):
                    product = closure[row * size + column] * self.cycle_before[column]
                    value = max(value, product) if self.is_viterbi else value + product
                self.cycle_after[row] = value
        else:
            self.iterate_cycle(cycle, cell, False)
        for row in range(size):
            if self.cycle_after[row] > 0.0 and self.is_allowed(cell, first + row):
                self.emit(start, end, first + row, self.cycle_after[row])

    cdef void iterate_cycle(self, symbol_t cycle, index_t cell, bint downward) noexcept nogil:
        """Close a cycle some of whose members are forbidden here: repeat single moves to convergence."""
        cdef const GrammarTable* grammar = &self.grammar.table
        cdef symbol_t first = grammar.cycle_first[cycle], size = grammar.cycle_size[cycle], row, other
        cdef index_t edge
        cdef weight_t value, product, change
        cdef int _sweep
        for row in range(size):
            self.cycle_after[row] = self.cycle_before[row]
        for _sweep in range(MAX_SWEEPS):
            change = 0.0
            for row in range(size):
                if not self.is_allowed(cell, first + row):
                    continue
                value = self.cycle_before[row]
                if downward:
                    for edge in range(grammar.up_start[first + row], grammar.up_start[first + row + 1]):
                        other = grammar.up_parent[edge] - first
                        if 0 <= other < size:
                            product = grammar.up_weight[edge] * self.cycle_after[other]
                            value = max(value, product) if self.is_viterbi else value + product
                else:
                    for edge in range(grammar.down_start[first + row], grammar.down_start[first + row + 1]):
                        other = grammar.down_child[edge] - first
                        if 0 <= other < size:
                            product = grammar.down_weight[edge] * self.cycle_after[other]
                            value = max(value, product) if self.is_viterbi else value + product
                if value > 0.0:
                    change = max(change, fabs(value - self.cycle_after[row]) / value)
                self.cycle_after[row] = value
            if change <= CONVERGED:
                return

    cdef void emit(self, position_t start, position_t end, symbol_t symbol, weight_t value) noexcept nogil:
        """Store a value and offer it to the unary parents of its symbol."""
        cdef const GrammarTable* grammar = &self.grammar.table
        cdef index_t left = <index_t>start * grammar.n_symbols + symbol
        cdef index_t right = <index_t>end * grammar.n_symbols + symbol
        cdef index_t n_words = self.n_position_words, label = grammar.label[symbol], edge, slot
        if self.left_slot[left] < 0:
            self.left_slot[left] = self.n_left_slots
            self.n_left_slots += 1
            self.left_places.push_back(left)
            self.left_inside.resize(self.n_left_slots * self.stride, 0.0)
            self.left_low.push_back(end)
            self.left_high.push_back(end)
            self.row_symbols[start].push_back(symbol)
        if self.right_slot[right] < 0:
            self.right_slot[right] = self.n_right_slots
            self.n_right_slots += 1
            self.right_places.push_back(right)
            self.right_inside.resize(self.n_right_slots * self.stride, 0.0)
            self.right_low.push_back(start)
            self.right_high.push_back(start)
        # Spans come by length: the ends of a row only grow, the starts of a column only shrink.
        slot = self.left_slot[left]
        self.left_high[slot] = end
        self.left_inside[slot * self.stride + end] = value
        slot = self.right_slot[right]
        self.right_low[slot] = start
        self.right_inside[slot * self.stride + start] = value
        self.left_alive[(start * grammar.n_labels + label) * n_words + (end >> 6)] |= <bits_t>1 << (end & 63)
        self.right_alive[(end * grammar.n_labels + label) * n_words + (start >> 6)] |= <bits_t>1 << (start & 63)
        self.cell_symbols.push_back(symbol)
        cdef symbol_t cycle = grammar.cycle_of[symbol]
        for edge in range(grammar.up_start[symbol], grammar.up_start[symbol + 1]):
            if cycle < 0 or grammar.cycle_of[grammar.up_parent[edge]] != cycle:
                self.add(grammar.up_parent[edge], grammar.up_weight[edge] * value)

    # ---- outside -----------------------------------------------------------------------------------------

    def fill_outside(self, weight_t smallest_share=0.0):
        """Compute the outside values; `fill` must have found a derivation.

        Parameters
        ----------
        smallest_share : float
            A symbol over a span that has less than this share of the root's value gets the outside value 0 and
            hands nothing down. Max-marginals of what has more stay exact; a posterior loses at most the
            posteriors of those of its parents that were left out.
        """
        if self.total <= 0.0 or self.is_over_budget:
            raise ValueError("the chart holds no derivation")
        if self.has_outside and self.smallest_share <= smallest_share:
            return
        self.smallest_share = smallest_share
        with nogil:
            self.left_outside.assign(self.left_inside.size(), 0.0)
            self.right_outside.assign(self.right_inside.size(), 0.0)
            self.outside_pass()
        self.has_outside = True

    cdef void outside_pass(self) noexcept nogil:
        cdef position_t length, start
        for length in range(self.n_words, 0, -1):
            for start in range(self.n_words - length + 1):
                self.outside_cell(start, start + length)

    cdef void outside_cell(self, position_t start, position_t end) noexcept nogil:
        cdef const GrammarTable* grammar = &self.grammar.table
        cdef index_t cell = self.cell_of(start, end), position, left, right
        cdef symbol_t symbol
        cdef weight_t largest = 0.0, from_left, from_right
        cdef const LiveBlock* live
        for position in range(self.cell_begin[cell], self.cell_end[cell]):
            symbol = self.cell_symbols[position]
            left = self.left_slot[<index_t>start * grammar.n_symbols + symbol] * self.stride + end
            right = self.right_slot[<index_t>end * grammar.n_symbols + symbol] * self.stride + start
            from_left, from_right = self.left_outside[left], self.right_outside[right]
            self.sums[symbol] = max(from_left, from_right) if self.is_viterbi else from_left + from_right
            self.cell_inside[symbol] = self.left_inside[left]
            if symbol == grammar.root and end - start == self.n_words:
                self.sums[symbol] = max(1.0, self.sums[symbol]) if self.is_viterbi else 1.0 + self.sums[symbol]
            largest = max(largest, self.sums[symbol])
        if largest > 0.0:
            position = self.cell_end[cell] - 1
            while position >= self.cell_begin[cell]:
                symbol = self.cell_symbols[position]
                if grammar.cycle_of[symbol] >= 0:
                    # Members of a cycle are neighbours in the cell as well.
                    self.outside_cycle(grammar.cycle_of[symbol], cell)
                    while position >= self.cell_begin[cell] and (
                            grammar.cycle_of[self.cell_symbols[position]] == grammar.cycle_of[symbol]):
                        if not self.drop_if_small(self.cell_symbols[position]):
                            self.hand_down(self.cell_symbols[position])
                        position -= 1
                else:
                    if not self.drop_if_small(symbol):
                        self.hand_down(symbol)
                    position -= 1
            if end - start > 1:
                if self.is_masked:
                    self.collect_cell_labels(cell)
                    for position in range(self.live_begin[cell], self.live_end[cell]):
                        live = &self.live_blocks[position]
                        if self.label_stamp[live.label] == self.last_stamp:
                            self.distribute_block(live.block, start, end, live.low, live.high)
                else:
                    self.distribute_all(start, end)
        for position in range(self.cell_begin[cell], self.cell_end[cell]):
            symbol = self.cell_symbols[position]
            left = self.left_slot[<index_t>start * grammar.n_symbols + symbol] * self.stride + end
            self.left_outside[left] = self.sums[symbol]
            self.sums[symbol] = 0.0
            self.cell_inside[symbol] = 0.0

    cdef void outside_cycle(self, symbol_t cycle, index_t cell) noexcept nogil:
        cdef const GrammarTable* grammar = &self.grammar.table
        cdef symbol_t first = grammar.cycle_first[cycle], size = grammar.cycle_size[cycle], row, column
        cdef const weight_t* closure
        cdef weight_t value, product
        cdef bint all_alive = True
        for row in range(size):
            self.cycle_before[row] = self.sums[first + row]
            all_alive = all_alive and self.cell_inside[first + row] > 0.0
        if self.is_masked and not all_alive:
            # Which members may stand here is asked from the mask again.
            self.collect_allowed_labels(cell)
            self.iterate_cycle(cycle, cell, True)
        else:
            closure = &grammar.cycle_sums[grammar.cycle_matrix[cycle]]
            if self.is_viterbi:
                closure = &grammar.cycle_best[grammar.cycle_matrix[cycle]]
            for column in range(size):
                value = 0.0
                for row in range(size):
                    product = closure[row * size + column] * self.cycle_before[row]
                    value = max(value, product) if self.is_viterbi else value + product
                self.cycle_after[column] = value
        for row in range(size):
            if self.cell_inside[first + row] > 0.0:
                self.sums[first + row] = self.cycle_after[row]

    cdef bint drop_if_small(self, symbol_t symbol) noexcept nogil:
        """Forget the outside value of a symbol with too small a share; whether it has none."""
        if self.sums[symbol] * self.cell_inside[symbol] < self.smallest_share * self.total:
            self.sums[symbol] = 0.0
        return self.sums[symbol] == 0.0

    cdef void hand_down(self, symbol_t symbol) noexcept nogil:
        """Give a symbol's outside value to its unary children in the same cell."""
        cdef const GrammarTable* grammar = &self.grammar.table
        cdef index_t edge
        cdef symbol_t child
        cdef weight_t value
        for edge in range(grammar.down_start[symbol], grammar.down_start[symbol + 1]):
            child = grammar.down_child[edge]
            if self.cell_inside[child] > 0.0 and (
                    grammar.cycle_of[symbol] < 0 or grammar.cycle_of[child] != grammar.cycle_of[symbol]):
                value = grammar.down_weight[edge] * self.sums[symbol]
                self.sums[child] = max(self.sums[child], value) if self.is_viterbi else self.sums[child] + value

    cdef void distribute_all(self, position_t start, position_t end) noexcept nogil:
        cdef const GrammarTable* grammar = &self.grammar.table
        cdef const symbol_t* left_slots = &self.left_slot[<index_t>start * grammar.n_symbols]
        cdef const symbol_t* right_slots = &self.right_slot[<index_t>end * grammar.n_symbols]
        cdef const weight_t* sums = self.sums.data()
        cdef symbol_t left
        cdef index_t position, pair, rule, left_slot, right_slot
        cdef position_t left_low, left_high, low, high
        cdef weight_t value
        for position in range(<index_t>self.row_symbols[start].size()):
            left = self.row_symbols[start][position]
            left_slot = left_slots[left]
            left_low = max(start + 1, self.left_low[left_slot])
            left_high = min(end - 1, self.left_high[left_slot])
            if left_low > left_high:
                continue
            for pair in range(grammar.pair_start[left], grammar.pair_start[left + 1]):
                right_slot = right_slots[grammar.pair_right[pair]]
                if right_slot < 0:
                    continue
                low = max(left_low, self.right_low[right_slot])
                high = min(left_high, self.right_high[right_slot])
                if low > high:
                    continue
                value = 0.0
                for rule in range(grammar.pair_rule_start[pair], grammar.pair_rule_start[pair + 1]):
                    if not self.is_viterbi:
                        value += grammar.rule_weight[rule] * sums[grammar.rule_parent[rule]]
                    else:
                        value = max(value, grammar.rule_weight[rule] * sums[grammar.rule_parent[rule]])
                if value > 0.0:
                    self.spread(left_slot, right_slot, value, low, high)

    cdef void distribute_block(self, index_t block, position_t start, position_t end,
                               position_t low, position_t high) noexcept nogil:
        cdef const GrammarTable* grammar = &self.grammar.table
        cdef const symbol_t* left_slots = &self.left_slot[<index_t>start * grammar.n_symbols]
        cdef const symbol_t* right_slots = &self.right_slot[<index_t>end * grammar.n_symbols]
        cdef const weight_t* sums = self.sums.data()
        cdef index_t run, pair, rule, left_slot, right_slot
        cdef position_t left_low, left_high, first, last
        cdef weight_t value
        for run in range(grammar.run_start[block], grammar.run_start[block + 1]):
            left_slot = left_slots[grammar.run_left[run]]
            if left_slot < 0:
                continue
            left_low, left_high = max(low, self.left_low[left_slot]), min(high, self.left_high[left_slot])
            if left_low > left_high or (
                    left_low == left_high and self.left_inside[left_slot * self.stride + left_low] == 0.0):
                continue
            for pair in range(grammar.run_pair_start[run], grammar.run_pair_start[run + 1]):
                right_slot = right_slots[grammar.block_pair_right[pair]]
                if right_slot < 0:
                    continue
                first, last = max(left_low, self.right_low[right_slot]), min(left_high, self.right_high[right_slot])
                if first > last:
                    continue
                value = 0.0
                for rule in range(grammar.block_rule_start[pair], grammar.block_rule_start[pair + 1]):
                    if not self.is_viterbi:
                        value += grammar.block_rule_weight[rule] * sums[grammar.block_rule_parent[rule]]
                    else:
                        value = max(value, grammar.block_rule_weight[rule] * sums[grammar.block_rule_parent[rule]])
                if value > 0.0:
                    self.spread(left_slot, right_slot, value, first, last)

    cdef void spread(self, index_t left_slot, index_t right_slot, weight_t value,
                     position_t low, position_t high) noexcept nogil:
        """Give a pair of children the outside value of their parents, at all split points."""
        cdef index_t left = left_slot * self.stride + low, right = right_slot * self.stride + low
        cdef index_t n_splits = high - low + 1
        cdef weight_t best, smallest = self.smallest_share * self.total
        if smallest > 0.0:
            # Telling that all of them together have too small a share costs half of what giving it does.
            if self.is_viterbi:
                best = max_product(&self.left_inside[left], &self.right_inside[right], n_splits)
            else:
                best = dot_product(&self.left_inside[left], &self.right_inside[right], n_splits)
            if value * best < smallest:
                return
        if self.is_viterbi:
            max_scaled(&self.left_outside[left], &self.right_inside[right], value, n_splits)
            max_scaled(&self.right_outside[right], &self.left_inside[left], value, n_splits)
        else:
            add_scaled(&self.left_outside[left], &self.right_inside[right], value, n_splits)
            add_scaled(&self.right_outside[right], &self.left_inside[left], value, n_splits)

    cdef void collect_cell_labels(self, index_t cell) noexcept nogil:
        """The labels of the symbols in a cell that have an outside value."""
        cdef index_t position
        cdef symbol_t symbol, label
        # New with every call, and below -1: no label that it marks looks allowed by the mask.
        self.last_stamp -= 1
        self.cell_labels.clear()
        for position in range(self.cell_begin[cell], self.cell_end[cell]):
            symbol = self.cell_symbols[position]
            label = self.grammar.table.label[symbol]
            if self.sums[symbol] > 0.0 and self.label_stamp[label] != self.last_stamp:
                self.label_stamp[label] = self.last_stamp
                self.cell_labels.push_back(label)

    # ---- results -----------------------------------------------------------------------------------------

    def make_mask(self, double threshold):
        """What survives pruning: labels and symbols with at least this share of the root's value.

        After `fill` the share is the posterior probability (a label's is the sum over its symbols), after
        ``fill(viterbi=True)`` the max-marginal: the best derivation through it relative to the best of all.
        """
        if not self.has_outside:
            raise ValueError("pruning needs outside values")
        cdef Mask mask = Mask()
        cdef index_t n_cells = self.cell_begin.size(), cell, position
        cdef position_t start, end
        cdef symbol_t symbol, label
        cdef vector[weight_t] shares
        cdef weight_t share
        mask.grammar, mask.n_words = self.grammar, self.n_words
        mask.n_label_words = (self.grammar.n_labels + 63) // 64
        mask.n_symbol_words = (self.grammar.n_symbols + 63) // 64
        with nogil:
            mask.label_bits.assign(n_cells * mask.n_label_words, 0)
            mask.symbol_bits.assign(n_cells * mask.n_symbol_words, 0)
            shares.assign(self.grammar.table.n_labels, 0.0)
            for start in range(self.n_words):
                for end in range(start + 1, self.n_words + 1):
                    cell = self.cell_of(start, end)
                    for position in range(self.cell_begin[cell], self.cell_end[cell]):
                        symbol = self.cell_symbols[position]
                        share = self.inside_of(start, end, symbol) * self.outside_of(start, end, symbol) / self.total
                        label = self.grammar.table.label[symbol]
                        shares[label] = max(shares[label], share) if self.is_viterbi else shares[label] + share
                        if share >= threshold:
                            mask.symbol_bits[cell * mask.n_symbol_words + (symbol >> 6)] |= (
                                <bits_t>1 << (symbol & 63))
                    for position in range(self.cell_begin[cell], self.cell_end[cell]):
                        label = self.grammar.table.label[self.cell_symbols[position]]
                        if shares[label] >= threshold and label < self.grammar.n_labels:
                            mask.label_bits[cell * mask.n_label_words + (label >> 6)] |= <bits_t>1 << (label & 63)
                        shares[label] = 0.0
        return mask

    def inside_values(self, position_t start, position_t end):
        """The inside (or Viterbi) values of a span as ``{symbol: log value}``, scaling removed."""
        return self.log_values(start, end, False)

    def outside_values(self, position_t start, position_t end):
        """The outside values of a span as ``{symbol: log value}``, scaling removed."""
        if not self.has_outside:
            raise ValueError("there are no outside values yet")
        return self.log_values(start, end, True)

    def log_values(self, position_t start, position_t end, bint outside):
        if not 0 <= start < end <= self.n_words:
            raise IndexError(f"no span {start}..{end} in {self.n_words} words")
        if self.is_over_budget:
            return {}
        cdef index_t cell = self.cell_of(start, end), position
        cdef symbol_t symbol
        cdef double value, scale = self.scale_prefix[end] - self.scale_prefix[start]
        if outside:
            scale = self.scale_prefix[self.n_words] - scale
        values = {}
        for position in range(self.cell_begin[cell], self.cell_end[cell]):
            symbol = self.cell_symbols[position]
            value = self.outside_of(start, end, symbol) if outside else self.inside_of(start, end, symbol)
            if value > 0.0:
                values[self.grammar.table.symbol_of[symbol]] = log(value) - scale
        return values

    @property
    def n_bytes(self):
        """The memory that the values of the last sentence take."""
        return self.bytes_in_use()
