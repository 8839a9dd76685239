"""Read a treebank, clean it, binarise it, replace rare words, split it, and write it.

Usage:
  tsgkit prepare [options] TREEBANK...
  tsgkit prepare -h | --help | --version

A TREEBANK is a file (plain, gzip or xz), a folder, a glob pattern, - for stdin, nltk:NAME for an NLTK
corpus, or sampler, sampler:train, sampler:dev, sampler:test for the bundled treebank.

Options:
  -o FILE, --output=FILE   where to write; a name in .gz or .xz is packed, one in .npz gets the flat
                           corpus as arrays [default: -]
  --format=FORMAT          of the input: auto, brackets or export [default: auto]
  --write=FORMAT           of the output: line (one tree a line), pretty or export [default: line]
  --encoding=NAME          of the input [default: utf-8]
  --nfc                    bring text to Unicode's normal form C
  --unescape               turn words like -LRB- into the brackets they stand for
  --skip-bad               leave out what is not a tree, and list it, instead of stopping

Cleaning (all on unless said otherwise):
  --keep-functions         keep function tags and indices (NP-SBJ-1)
  --keep-empty             keep traces and other empty nodes
  --empty-tags=TAGS        tags of empty words, separated by commas [default: -NONE-]
  --keep-repeats           keep X over X
  --collapse-unaries       join chains of phrases with one child (S+VP)
  --root=LABEL             the root that every tree gets; none adds none [default: TOP]

Binarisation:
  --binarize=METHOD        none, right, left or centre-head [default: none]
  --horizontal=N           siblings that an intermediate symbol remembers, or all [default: all]
  --vertical=N             1: labels as they are; 2: with the parent's; ... [default: 1]
  --heads=RULES            for centre-head: penn, leftmost, rightmost or a file [default: penn]
  --debinarize             undo a binarisation made with these options instead of making one

Rare words:
  --unknown=MODEL          none, signature, three, one or unicode [default: none]
  --threshold=N            words seen at most N times are replaced by their class [default: 1]

Splitting:
  --split=SHARES           for instance 80,10,10: writes FILE with .train, .dev and .test put in before
                           its ending; for two shares only train and test
  --shuffle=SEED           split at random (but keep the order inside the parts)

Other:
  --statistics             print sizes as a table instead of trees (or beside them, with --output)
  -q, --quiet              no progress and no remarks
  -h, --help               this text
  --version                the version
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nltk.tree import Tree

from tsgkit.cli import choice, command, integer, parse_arguments
from tsgkit.errors import TreebankError, UsageError
from tsgkit.progress import progress
from tsgkit.treebank import Binarization, Cleaning, UnknownWords, prepare, read_trees, write_trees
from tsgkit.treebank.binarize import METHODS
from tsgkit.treebank.prepare import split_trees, statistics
from tsgkit.treebank.sources import READ_FORMATS, WRITE_FORMATS
from tsgkit.treebank.unknown import MODELS

PARTS = {2: ("train", "test"), 3: ("train", "dev", "test")}


@dataclass(frozen=True)
class Job:
    """The options, checked."""

    cleaning: Cleaning
    binarization: Binarization | None
    debinarize: bool
    unknown: UnknownWords | None
    output: str
    write_format: str
    quiet: bool

    def trees(self, trees: Iterator[Tree]) -> Iterator[Tree]:
        """Each tree cleaned and binarised (or its binarisation undone)."""
        for tree in progress(trees, "trees", "trees", quiet=self.quiet):
            if self.debinarize and self.binarization is not None:
                yield self.binarization.undo(tree)
                continue
            clean = self.cleaning.apply(tree)
            if clean is not None:
                yield clean if self.binarization is None else self.binarization.apply(clean)

    def write(self, trees: Iterator[Tree], path: str) -> None:
        if path.endswith(".npz"):
            prepare(trees, self.cleaning, self.binarization, self.unknown).save(path)
            return
        encoded = self.trees(trees)
        if self.unknown is not None:
            corpus = prepare(encoded, Cleaning((), False, False, False, ""), None, self.unknown)
            encoded = corpus.trees(original_words=False)
        write_trees(encoded, path, self.write_format)


def binarization_of(arguments: dict[str, Any]) -> Binarization | None:
    method = choice(arguments, "--binarize", ("none", *METHODS))
    if method == "none":
        if arguments["--debinarize"]:
            raise UsageError("--debinarize needs --binarize=METHOD, to know what to undo")
        return None
    horizontal = None if arguments["--horizontal"] == "all" else integer(arguments, "--horizontal", 0)
    return Binarization(method, horizontal, integer(arguments, "--vertical", 1), arguments["--heads"])


def job_of(arguments: dict[str, Any]) -> Job:
    root = arguments["--root"]
    empty_tags = tuple(tag for tag in arguments["--empty-tags"].split(",") if tag)
    unknown = choice(arguments, "--unknown", ("none", *MODELS))
    return Job(
        cleaning=Cleaning(
            empty_tags=() if arguments["--keep-empty"] else empty_tags,
            functions=not arguments["--keep-functions"],
            repeats=not arguments["--keep-repeats"],
            unaries=arguments["--collapse-unaries"],
            root="" if root == "none" else root,
        ),
        binarization=binarization_of(arguments),
        debinarize=arguments["--debinarize"],
        unknown=None if unknown == "none" else UnknownWords(unknown, integer(arguments, "--threshold", 0)),
        output=arguments["--output"],
        write_format=choice(arguments, "--write", WRITE_FORMATS),
        quiet=arguments["--quiet"],
    )


def shares_of(text: str) -> list[float]:
    try:
        shares = [float(share) for share in text.split(",")]
    except ValueError:
        shares = []
    if len(shares) not in PARTS or min(shares) < 0 or not 0 < sum(shares) < float("inf"):
        raise UsageError(f"--split={text}: must be two or three shares such as 80,10,10")
    return shares


def write_split(job: Job, trees: Iterator[Tree], shares: Sequence[float], seed: int | None) -> None:
    if job.output == "-":
        raise UsageError("--split writes several files: name them with --output=FILE")
    target = Path(job.output)
    for name, part in zip(PARTS[len(shares)], split_trees(list(trees), shares, seed), strict=True):
        suffixes = "".join(target.suffixes[-2:]) if target.suffix in (".gz", ".xz") else target.suffix
        path = target.with_name(f"{target.name.removesuffix(suffixes)}.{name}{suffixes}")
        job.write(iter(part), str(path))
        if not job.quiet:
            print(f"{path}: {len(part)} trees", file=sys.stderr)


def report_skipped(skipped: list[TreebankError]) -> None:
    for error in skipped:
        print(f"skipped: {error}", file=sys.stderr)
    print(f"tsgkit: skipped {len(skipped)} bad tree{'s'[: len(skipped) != 1]}", file=sys.stderr)


@command
def main(argv: list[str]) -> int:
    arguments = parse_arguments(__doc__, argv)
    job = job_of(arguments)
    skipped: list[TreebankError] | None = [] if arguments["--skip-bad"] else None
    trees = read_trees(
        arguments["TREEBANK"],
        format=choice(arguments, "--format", READ_FORMATS),
        skipped=skipped,
        unescape=arguments["--unescape"],
        nfc=arguments["--nfc"],
        encoding=arguments["--encoding"],
    )
    if arguments["--split"]:
        seed = None if arguments["--shuffle"] is None else integer(arguments, "--shuffle", 0)
        write_split(job, trees, shares_of(arguments["--split"]), seed)
    elif arguments["--statistics"]:
        if job.output != "-":
            kept = list(trees)
            job.write(iter(kept), job.output)
            trees = iter(kept)
        for name, value in statistics(job.trees(trees)).items():
            print(f"{name:<18}{value:>12}")
    else:
        job.write(trees, job.output)
    if skipped is not None:
        report_skipped(skipped)
    return 0


if __name__ == "__main__":
    sys.exit(main())
