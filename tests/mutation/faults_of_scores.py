"""Deliberate faults in the bracket scorer."""

from mutation.fault import Fault

SCORER = "ext/tsgkit/_brackets.pyx"
BRACKET_TREES = "ext/tsgkit/_bracket_trees.pyx"
BRACKET_MATCHING = "ext/tsgkit/_bracket_matching.pyx"

EVALB_TESTS = "tests/evaluation/test_oracle.py tests/evaluation/test_quirks.py tests/evaluation/test_evalb.py"
SCORER_TESTS = "tests/evaluation/test_scorer.py"

FAULTS = [
    # ---- scores
    Fault(
        "complete match without the test brackets",
        SCORER,
        "    return row.gold == row.test == row.matched\n",
        "    return row.gold == row.matched\n",
        "_brackets",
        EVALB_TESTS,
    ),
    Fault(
        "two crossings are too many",
        SCORER,
        "totals.two_or_less_crossing += row.crossing <= 2\n",
        "totals.two_or_less_crossing += row.crossing < 2\n",
        "_brackets",
        EVALB_TESTS,
    ),
    Fault(
        "scoring stops one error too late",
        SCORER,
        "        if self.n_errors > self.max_errors and self.stop_on_errors:\n",
        "        if self.n_errors > self.max_errors + 1 and self.stop_on_errors:\n",
        "_brackets",
        EVALB_TESTS,
    ),
    Fault(
        "restored quotation marks without new brackets",
        SCORER,
        "            repair_quotes(self.gold, self.test)\n            self.take_brackets()\n",
        "            repair_quotes(self.gold, self.test)\n",
        "_brackets",
        EVALB_TESTS,
    ),
    Fault(
        "percentages are rounded half up",
        SCORER,
        "            hundredths += past_half > 0 or (past_half == 0 and hundredths % 2 == 1)\n",
        "            hundredths += 1\n",
        "_brackets",
        SCORER_TESTS,
    ),
    Fault(
        "labels are cut at = only",
        BRACKET_TREES,
        'text.start[prefix.n_bytes] not in b"-=":\n',
        'text.start[prefix.n_bytes] not in b"=":\n',
        "_bracket_trees",
        EVALB_TESTS,
    ),
    Fault(
        "a label equal to a deleted one stays",
        BRACKET_TREES,
        "            self.table[label].deletes_bracket = self.is_bracket_deleted(label)\n",
        "            self.table[label].deletes_bracket = self.table[label].deletes_word\n",
        "_bracket_trees",
        EVALB_TESTS,
    ),
    Fault(
        "long labels with one key are one",
        BRACKET_TREES,
        "text.n_bytes <= N_EXACT_BYTES or same_text(label.text, text)",
        "text.n_bytes <= 1 << 30 or same_text(label.text, text)",
        "_bracket_trees",
        SCORER_TESTS,
    ),
    Fault(
        "a restored quotation mark does not move brackets",
        BRACKET_TREES,
        "            self.brackets[index].start += 1\n",
        "            self.brackets[index].start += 0\n",
        "_bracket_trees",
        EVALB_TESTS,
    ),
    Fault(
        "a matched bracket stays free",
        BRACKET_MATCHING,
        "            self.first_of_label[best] = self.next_of_label[test]\n",
        "            pass\n",
        "_bracket_matching",
        EVALB_TESTS,
    ),
    Fault(
        "brackets that end together cross",
        BRACKET_MATCHING,
        "self.ends.front() < self.test[test].end:\n",
        "self.ends.front() <= self.test[test].end:\n",
        "_bracket_matching",
        EVALB_TESTS,
    ),
    Fault(
        "matched brackets of malformed trees cannot cross",
        BRACKET_MATCHING,
        "        if not self.is_valid:\n",
        "        if False:\n",
        "_bracket_matching",
        EVALB_TESTS,
    ),
]
