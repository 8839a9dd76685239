"""F1 of the PCFG by markovisation, model of unknown words, binarisation and objective, as tables.

Usage:
  tools.bench.markovisation [options]
  tools.bench.markovisation -h | --help | --version

Run it as ``python -m tools.bench.markovisation``. It trains and evaluates on the WSJ sample if the environment variable
TSGKIT_TREEBANKS names its folder, else on the bundled treebank. F1 is EVALB's; strict F1 counts all brackets; rates are
sentences per second of processor time.

Options:
  --train=TREEBANK  Training trees, as for `tsgkit prepare`.
  --dev=TREEBANK    Trees to evaluate on.
  --sentences=N     Maximum number of sentences.
  --slices=NAMES    Tables: markovisation, unknown, binarisation, objectives; all by default.
  -h --help         This text.
  --version         The version.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tsgkit._cli import command, parse_arguments
from tsgkit._options import optional_integer
from tsgkit.errors import UsageError
from tsgkit.evaluation import evaluate
from tsgkit.evaluation._report import columns
from tsgkit.models._cfg import cfg_model
from tsgkit.parsing import Parser
from tsgkit.treebank import Binarization, UnknownWords, prepare
from tsgkit.treebank._binarize import METHODS
from tsgkit.treebank.unknown._model import UNKNOWN_WORDS

from .parse import Treebank, read_treebank, timed, wsj_sample

HEAD = (
    *("binarised", "h", "v", "unknown", "threshold", "objective"),
    *("F1", "strict F1", "tags", "rules", "sent/CPU s", "fallbacks"),
)
N_LEFT = 6


@dataclass(frozen=True)
class Setting:
    """One row of a table."""

    method: str = "right"
    horizontal: int | None = 1
    vertical: int = 2
    unknown: str = "unicode"
    threshold: int = 1
    objective: str = "max-rule"

    def names(self) -> tuple[str, ...]:
        horizontal = "all" if self.horizontal is None else str(self.horizontal)
        return (
            *(self.method, horizontal, str(self.vertical)),
            *(self.unknown, str(self.threshold), self.objective),
        )


DEFAULT = Setting()
PLAIN = Setting(horizontal=0, vertical=1, objective="mpd")
SLICES = {
    "markovisation": [
        replace(DEFAULT, horizontal=horizontal, vertical=vertical, objective=objective)
        for objective in ("mpd", "max-rule")
        for vertical in (1, 2, 3)
        for horizontal in (0, 1, 2, None)
    ],
    "unknown": [
        replace(setting, unknown=model, threshold=threshold)
        for setting in (PLAIN, replace(PLAIN, horizontal=1), DEFAULT)
        for model in UNKNOWN_WORDS.names
        for threshold in (1, 5)
    ],
    "binarisation": [
        replace(DEFAULT, method=method, horizontal=horizontal) for method in METHODS for horizontal in (1, 2)
    ],
    "objectives": [replace(DEFAULT, objective=objective) for objective in ("mpd", "mpp", "mer", "max-rule")],
}


@command
def main(argv: list[str]) -> int:
    arguments = parse_arguments(__doc__, argv)
    names = arguments["--slices"].split(",") if arguments["--slices"] else list(SLICES)
    if unknown := [name for name in names if name not in SLICES]:
        raise UsageError(f"--slices={unknown[0]}: must be among {', '.join(SLICES)}")
    treebank = treebank_of(arguments["--train"], arguments["--dev"])
    treebank.gold = treebank.gold[: optional_integer(arguments, "--sentences", 1)]
    n_train, n_gold = len(treebank.train), len(treebank.gold)
    print(f"trained on {n_train} trees ({treebank.name}), {n_gold} sentences parsed")
    measured: dict[Setting, tuple[str, ...]] = {}
    for name in names:
        print(f"\n=== {name} ===")
        print(columns(HEAD, list(rows(treebank, SLICES[name], measured)), N_LEFT), end="", flush=True)
    return 0


def treebank_of(train: str | None, dev: str | None) -> Treebank:
    """The treebanks of the options, or the WSJ sample, or the bundled one."""
    if (train is None) != (dev is None):
        raise UsageError("--train and --dev go together")
    if train is not None and dev is not None:
        return read_treebank(train, train, dev)
    if sample := wsj_sample():
        return read_treebank("wsj-sample", *sample)
    return read_treebank("village", "village:train", "village:dev")


def rows(
    treebank: Treebank, settings: list[Setting], measured: dict[Setting, tuple[str, ...]]
) -> Iterator[tuple[str, ...]]:
    """The rows of a table; settings that several tables share are measured once."""
    for setting in settings:
        if setting not in measured:
            measured[setting] = measure(treebank, setting)
        yield (*setting.names(), *measured[setting])


def measure(treebank: Treebank, setting: Setting) -> tuple[str, ...]:
    """Train, parse and score."""
    binarization = Binarization(setting.method, setting.horizontal, setting.vertical)
    unknown = UnknownWords(setting.unknown, setting.threshold)
    model = cfg_model(prepare(treebank.train, binarization=binarization, unknown=unknown))
    timing = timed(Parser(model, objective=setting.objective), treebank.sentences)
    score = evaluate(treebank.gold, timing.trees)
    return (
        f"{score.f1:.2f}",
        f"{score.strict.f1:.2f}",
        f"{score.strict.tagging_accuracy:.2f}",
        str(model.grammar.n_rules),
        f"{timing.rate:.1f}",
        str(timing.n_fallbacks),
    )


if __name__ == "__main__":
    sys.exit(main(None))
