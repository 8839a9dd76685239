"""Synthetic treebanks: trees sampled from a hand-written grammar, so that their fragments and insertions are known.

`grammar` has the elementary trees and words, `derivations` samples from them, `recovery` scores a sampler.
"""

from tsgkit.treebank.synthetic._derivations import (
    Derivation,
    assemble,
    generate,
    generate_derivations,
    n_words,
    without_marks,
)
from tsgkit.treebank.synthetic._grammar import (
    ElementaryTree,
    SyntheticGrammar,
    synthetic_fragments,
    synthetic_grammar,
)
from tsgkit.treebank.synthetic._recovery import Recovery, recovery

__all__ = [
    "Derivation",
    "ElementaryTree",
    "Recovery",
    "SyntheticGrammar",
    "assemble",
    "generate",
    "generate_derivations",
    "n_words",
    "recovery",
    "synthetic_fragments",
    "synthetic_grammar",
    "without_marks",
]
