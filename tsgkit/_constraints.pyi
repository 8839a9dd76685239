from collections.abc import Sequence
from typing import final

from numpy.typing import ArrayLike

from tsgkit._grammar_index import GrammarIndex

MAX_STATES: int

@final
class Constraints:
    def __init__(
        self, grammar: GrammarIndex, n_words: int, spans: Sequence[tuple[int, int]], automata: Sequence[ArrayLike]
    ) -> None: ...
    @property
    def grammar(self) -> GrammarIndex: ...
    @property
    def n_words(self) -> int: ...
    @property
    def n_states(self) -> int: ...
    @property
    def n_rows(self) -> int: ...
