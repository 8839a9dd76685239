"""The panel of a report on the raw text that a model has learned from, beside its treebank."""

from collections.abc import Iterator

import numpy as np

from tsgkit.raw_text._teaching import teaching_of
from tsgkit.report._model_report import Report
from tsgkit.report._page import escape, table
from tsgkit.report._panels import Panel
from tsgkit.treebank import FlatCorpus
from tsgkit.treebank._binarize import undo_label

N_NEW_WORDS = 15
N_TAGS = 3
# What the record of raw text has, in words.
NUMBERS = {
    "lines": "lines read",
    "empty": "empty lines",
    "too_long": "too long",
    "used": "sentences parsed by the teachers",
    "fallback": "with a fallback tree alone, not learned from",
    "parsed": "sentences learned from",
}


def raw_text(report: Report) -> Iterator[str]:
    """What was read and used, and which words the treebank alone does not have."""
    corpus = report.model.corpus
    record = None if corpus is None else teaching_of(corpus)
    if corpus is None or record is None:
        return
    sources = ", ".join(map(str, record.get("sources") or ["sentences in memory"]))
    yield (
        f"<p>The first {record['gold_trees']:,} training trees are those of the treebank. The others were made of the"
        f" raw text {escape(sources)} by the product of {record['teachers']:,} teachers, models of the treebank.</p>"
    )
    rows = [(what, f"{record[name]:,}") for name, what in NUMBERS.items() if isinstance(record.get(name), int)]
    yield table(("Raw text", "Number"), rows)
    known, new = vocabulary(corpus, record["gold_trees"])
    if not len(new):
        return
    yield (
        f"<p>{len(known):,} different words are in the treebank; {len(new):,} more are in the raw text alone. The most"
        " frequent of these, with the tags that the teachers gave them:</p>"
    )
    yield table(("Word", "Tags", "Occurrences"), new_words(corpus, record["gold_trees"], new), n_text=2)


def vocabulary(corpus: FlatCorpus, n_gold: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the words in the treebank, and of those in the raw text alone, the most frequent first."""
    first = int(corpus.tree_start[min(n_gold, corpus.n_trees)])
    known = np.unique(corpus.form[:first][corpus.form[:first] >= 0])
    counts = np.bincount(corpus.form[corpus.form >= 0], minlength=len(corpus.forms))
    counts[known] = 0
    order = np.argsort(-counts, kind="stable")
    return known, order[: int(np.count_nonzero(counts))]


def new_words(corpus: FlatCorpus, n_gold: int, new: np.ndarray) -> Iterator[tuple[str, str, str]]:
    """The most frequent words of the raw text alone, with their most frequent tags and the number of occurrences."""
    first = int(corpus.tree_start[min(n_gold, corpus.n_trees)])
    form, label = corpus.form[first:], corpus.label[first:]
    for number in new[:N_NEW_WORDS].tolist():
        tags, counts = np.unique(label[form == number], return_counts=True)
        order = np.argsort(-counts, kind="stable")[:N_TAGS].tolist()
        shown = ", ".join(f"{undo_label(corpus.labels[tags[place]])} {counts[place]:,}" for place in order)
        yield corpus.forms[number], shown, f"{counts.sum():,}"


RAW_TEXT = Panel("Raw text", raw_text)
