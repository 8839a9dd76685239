"""The settings of learning from raw text."""

from dataclasses import dataclass

from tsgkit._settings import Checked


@dataclass(frozen=True, kw_only=True)
class RawTextSettings(Checked):
    """How a student learns from raw sentences.

    Parameters
    ----------
    teachers : int
        The number of models trained on the treebank whose product parses the sentences.
    sentences : int
        At most so many sentences are used, the first ones of the text.
    max_length : int
        Longer sentences, in words, are left out.
    tokenize : bool
        Whether the text is not tokenised: it is split into words as in the Penn Treebank.
    """

    teachers: int = 4
    sentences: int = 5_000
    max_length: int = 60
    tokenize: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_least(1, "teachers", "sentences", "max_length")
