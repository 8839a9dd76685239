"""Options that several commands share: from the arguments of the command line to checked settings."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nltk.tree import Tree

from tsgkit._cli import choice, integer
from tsgkit._files import open_output
from tsgkit.distributed import Backend, make_backend
from tsgkit.distributed._backends import BACKENDS
from tsgkit.errors import TreebankError, UsageError
from tsgkit.evaluation._parameters import DEFAULT_PARAMETERS, Parameters, load_parameters, parameters_named
from tsgkit.treebank import Binarization, Cleaning, UnknownWords, read_trees
from tsgkit.treebank._binarize import METHODS
from tsgkit.treebank._formats import AUTO, READERS, split_format
from tsgkit.treebank._presets import Preset, facts_of_preset, head_rules_named, load_preset, preset_names, remembered
from tsgkit.treebank._relabel import read_relabelling
from tsgkit.treebank._sources import lost_share
from tsgkit.treebank.unknown._model import UNKNOWN_WORDS

# Of each kind of bad tree, so many are printed.
MOST_LISTED = 20


@dataclass(frozen=True)
class Reading:
    """How treebanks are read, and which trees were left out or changed.

    Attributes
    ----------
    options : dict
        Keyword arguments of `read_trees`.
    skipped, reattached : list, optional
        As for `read_trees`.
    n_trees : list of int
        How many trees were read, one number for each time that trees were asked for.
    list_to : str, optional
        The file that lists what was left out; unless given, the beginning of the list is printed.
    """

    options: dict[str, Any]
    skipped: list[TreebankError] | None
    reattached: list[str] | None
    n_trees: list[int] = field(default_factory=list)
    list_to: str | None = None

    def trees(self, sources: str | Iterable[str]) -> Iterator[Tree]:
        """The trees of treebanks; at their end, an error if too many were bad, after these are listed."""
        self.n_trees.append(0)
        try:
            for tree in read_trees(sources, **self.options, skipped=self.skipped, reattached=self.reattached):
                self.n_trees[-1] += 1
                yield tree
        except TreebankError:
            if self.skipped:
                self.report()
            raise

    def report(self) -> None:
        """Print to stderr which trees were left out or changed, if the options allow it, and if there were none."""
        if self.n_trees and not sum(self.n_trees) and not self.skipped:
            print("tsgkit: there were no trees", file=sys.stderr)
        if self.reattached is not None:
            n_trees = len(self.reattached)
            print(f"tsgkit: made {n_trees} tree{'s'[: n_trees != 1]} continuous", file=sys.stderr)
        if self.skipped is not None:
            self.list_skipped(self.skipped)
            print(f"tsgkit: skipped {lost_share(self.skipped, sum(self.n_trees))}", file=sys.stderr)

    def list_skipped(self, skipped: Sequence[TreebankError]) -> None:
        """List what was left out: all of it in a file, or the first of each kind on stderr."""
        if self.list_to is not None:
            with open_output(self.list_to) as file:
                file.writelines(f"{error}\n" for error in skipped)
            return
        listed: Counter[str] = Counter()
        for error in skipped:
            listed[error.reason] += 1
            if listed[error.reason] <= MOST_LISTED:
                print(f"skipped: {error}", file=sys.stderr)
        for reason, count in listed.items():
            if count > MOST_LISTED:
                more = f"{count - MOST_LISTED} more of the kind {reason!r}"
                print(f"skipped: {more}; --list-bad=FILE lists all", file=sys.stderr)


def report_wordless(n_trees: int) -> None:
    """Say how many trees were left out because cleaning left no words in them."""
    if n_trees:
        were = "trees were" if n_trees > 1 else "tree was"
        print(f"tsgkit: {n_trees} {were} left out: no words after cleaning", file=sys.stderr)


def reading_of(arguments: dict[str, Any]) -> Reading:
    """How treebanks are read, according to the options."""
    name, _ = split_format(arguments["--format"])
    choice({"--format": name}, "--format", (AUTO, *READERS.names))
    preset = preset_of(arguments)
    options = {
        "format": arguments["--format"],
        "treebank": preset,
        "max_bad": share(arguments, "--max-bad"),
        "unescape": arguments.get("--unescape", False),
        "nfc": arguments["--nfc"],
        "encoding": arguments["--encoding"],
    }
    continuous = arguments["--continuous"] or (preset is not None and preset.continuous)
    if arguments["--list-bad"] is not None and not arguments["--skip-bad"]:
        raise UsageError("--list-bad lists what --skip-bad skips: give both")
    skipped: list[TreebankError] | None = [] if arguments["--skip-bad"] else None
    return Reading(options, skipped, [] if continuous else None, list_to=arguments["--list-bad"])


def share(arguments: dict[str, Any], option: str) -> float:
    """A share from 0 to 1, also as a percentage."""
    text = arguments[option]
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise UsageError(f"{option}={text}: must be a share from 0 to 1, or from 0% to 100%")
    return value


def preset_of(arguments: dict[str, Any]) -> Preset | None:
    """The preset that --treebank names."""
    return None if arguments["--treebank"] is None else load_preset(arguments["--treebank"])


def parameters_of(arguments: dict[str, Any], of_model: str = "") -> Parameters:
    """The EVALB parameters of --params, or else of --treebank, or else of the model's treebank, or else the default."""
    if arguments["--params"] is not None:
        return load_parameters(arguments["--params"])
    preset = preset_of(arguments)
    return parameters_named((of_model if preset is None else preset.parameters) or DEFAULT_PARAMETERS)


def head_rules_of(arguments: dict[str, Any], default: str = "") -> str:
    """The text of the head rules of --heads, or else of --treebank, or else the default."""
    preset = preset_of(arguments)
    if arguments["--heads"] is not None:
        return head_rules_named(arguments["--heads"])
    return default if preset is None else preset.head_rules


def facts_of_treebank(arguments: dict[str, Any]) -> dict[str, Any]:
    """What a model remembers of its treebank, as arguments of `prepare`; --heads wins."""
    preset = preset_of(arguments)
    facts = {} if preset is None else facts_of_preset(preset)
    return facts | {"head_rules": remembered(head_rules_of(arguments))}


def cleaning_of(arguments: dict[str, Any]) -> Cleaning:
    """The cleaning steps of the preset, or the defaults, with those that the options select."""
    preset, root = preset_of(arguments), arguments["--root"]
    given: dict[str, Any] = {"functions": False} if arguments["--keep-functions"] else {}
    given |= {"repeats": False} if arguments["--keep-repeats"] else {}
    given |= {"unaries": True} if arguments["--collapse-unaries"] else {}
    given |= {"root": "" if root == "none" else root} if root is not None else {}
    given |= {"feature_mark": arguments["--cut-labels"]} if arguments["--cut-labels"] else {}
    if arguments["--keep-empty"]:
        given["empty_tags"] = ()
    elif arguments["--empty-tags"] is not None:
        given["empty_tags"] = tuple(tag for tag in arguments["--empty-tags"].split(",") if tag)
    base = Cleaning() if preset is None else preset.cleaning
    if arguments["--labels"] is not None:
        # The first rule that matches decides: those of the user come first.
        given["relabelling"] = f"{read_relabelling(arguments['--labels'])}\n{base.relabelling}"
    return replace(base, **given)


def binarization_of(arguments: dict[str, Any]) -> Binarization | None:
    """The binarisation that the options select, or None."""
    method = choice(arguments, "--binarize", ("none", *METHODS))
    if method == "none":
        return None
    horizontal = None if arguments["--horizontal"] == "all" else integer(arguments, "--horizontal", 0)
    vertical, preset = integer(arguments, "--vertical", 1), preset_of(arguments)
    if arguments["--heads"] in preset_names():
        preset = load_preset(arguments["--heads"])
    elif arguments["--heads"] is not None:
        return Binarization(method, horizontal, vertical, arguments["--heads"])
    if preset is None:
        return Binarization(method, horizontal, vertical)
    return Binarization(method, horizontal, vertical, preset.heads, rules=preset.rules)


def unknown_of(arguments: dict[str, Any]) -> UnknownWords | None:
    """How rare words are classed, or None if all words are kept."""
    model = choice(arguments, "--unknown", ("none", *UNKNOWN_WORDS.names))
    if model == "none":
        return None
    return UnknownWords(model, integer(arguments, "--threshold", 0), integer(arguments, "--min-types", 1))


def optional_integer(arguments: dict[str, Any], option: str, minimum: int) -> int | None:
    """The value of an option that need not be given."""
    return None if arguments[option] is None else integer(arguments, option, minimum)


def backend_of(arguments: dict[str, Any]) -> Backend:
    """Where the jobs run."""
    name = choice(arguments, "--backend", BACKENDS)
    return make_backend(name, optional_integer(arguments, "--jobs", 1), arguments["--scheduler"])


def require_one(arguments: dict[str, Any], *options: str) -> None:
    """Refuse options that contradict each other."""
    if len(given := [option for option in options if arguments[option]]) > 1:
        raise UsageError(f"{' and '.join(given)} contradict each other: give one of them")


def require_effect(arguments: dict[str, Any], option: str, has_effect: bool, needed: str) -> None:
    """Refuse an option that does nothing without another one.

    Examples
    --------
    >>> require_effect({"--params": "new"}, "--params", False, "--dev=TREEBANK")
    Traceback (most recent call last):
        ...
    tsgkit.errors.UsageError: --params goes with --dev=TREEBANK: alone it has no effect
    """
    if arguments[option] and not has_effect:
        raise UsageError(f"{option} goes with {needed}: alone it has no effect")


def seed_of(arguments: dict[str, Any]) -> int:
    """The seed: any whole number from 0 on."""
    seed = integer(arguments, "--seed", 0)
    if seed >= 1 << 63:
        raise UsageError(f"--seed={seed}: must be below 2^63")
    return seed
