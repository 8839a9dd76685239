"""The score of a sampler on a synthetic treebank: which fragments of the grammar it recovered.

After training. With the types found and the types of the grammar, precision and recall are the shares of each that are
in the other.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tsgkit.treebank._fragments import canonical, n_rules


@dataclass(frozen=True)
class Recovery:
    """How many fragments of the synthetic grammar a sampler found: types of at least two rules.

    Attributes
    ----------
    n_found, n_true, n_both : int
        Numbers of fragment types: found, in the synthetic grammar, and both.
    """

    n_found: int
    n_true: int
    n_both: int

    @property
    def precision(self) -> float:
        """The share of the found fragments that are in the synthetic grammar; 0 if none was found."""
        return self.n_both / self.n_found if self.n_found else 0.0

    @property
    def recall(self) -> float:
        """The share of the fragments of the synthetic grammar that were found; 0 if it has none."""
        return self.n_both / self.n_true if self.n_true else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        total = self.n_found + self.n_true
        return 2 * self.n_both / total if total else 0.0


def recovery(found_fragments: Iterable[str], truth: Iterable[str]) -> Recovery:
    """Compare the fragments that a sampler found with those of the synthetic grammar.

    Both are taken as sets, in bracket notation with frontier nodes as ``(NP )``, whatever their spaces. Fragments of
    one rule do not count: every sampler has them from the start.

    Parameters
    ----------
    found_fragments : iterable of str
        From the sampler.
    truth : iterable of str
        From `synthetic_fragments`.

    Examples
    --------
    >>> from tsgkit.treebank.synthetic import synthetic_fragments
    >>> truth = synthetic_fragments(kinds=["idiom"])
    >>> found = ["(VP (VBD broke) (NP (DT the) (NX (NN ice))))", "(NP (DT the) (NN ))", "(NN dog)"]
    >>> recovery(found, truth)
    Recovery(n_found=2, n_true=24, n_both=1)
    >>> recovery(found, truth).precision
    0.5
    """
    found, true = (
        {brackets for brackets in map(canonical, fragments) if n_rules(brackets) > 1}
        for fragments in (found_fragments, truth)
    )
    return Recovery(len(found), len(true), len(found & true))
