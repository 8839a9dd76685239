"""Parse sentences with a trained model.

Usage:
  tsgkit parse [options] MODEL...
  tsgkit parse -h | --help | --version

One sentence a line, its words separated by blanks (those of ASCII; a no-break space is part of a word); one
tree a line comes out, in the same order, over exactly these words, under the root of the treebank. An empty
line gives an empty tree. Several models of the same treebank decide together (--product). A sentence that
the grammar cannot analyse gets a fallback tree; how many did is said at the end, and --scores shows which.

Options:
  --score=TREES            parse nothing; print for each of these trees (a file, a folder, - or another source,
                           as annotated) the log probability of the tree with its words, summed over all its
                           derivations (of several models: the mean); -inf for a tree the grammar cannot make
  -i FILE, --input=FILE    sentences (plain, gzip or xz) [default: -]
  -o FILE, --output=FILE   trees; a file appears when all is done, stdout line by line [default: -]
  --tokenize               the input is raw text, one sentence a line: cut it into words as the Penn
                           Treebank does
  --tags=MODE              none, hard or soft; but for none, words come as word/TAG, and other tags are not
                           considered (hard) or count a hundredth (soft); the last slash counts, but not one
                           after a backslash; a word may have no tag [default: none]
  --objective=NAME         which tree is best: mpd (most probable derivation), mpp (most probable tree, from
                           the best derivations), mer (most expected correct rules), max-rule (largest
                           product of rule posteriors), or mpp-sampled, mer-sampled, max-rule-sampled
                           [default: max-rule]
  --product=NAME           what several models multiply: rules (posteriors of the treebank's rules) or trees
                           (probabilities of every model's 100 best) [default: rules]
  --kbest=N                so many trees, best first, then an empty line [default: 1]
  --scores                 before each tree, separated by tabs: the sentence's number, the tree's rank, its
                           log probability given the words, its score, and the kind of fallback (or ok)
  --confidence             give every phrase its posterior probability, as in NP=0.930 (`tsgkit eval`, EVALB
                           and `tsgkit prepare` cut it off again); 0 in a fallback tree
  --max-length=N           longer sentences get a flat fallback tree
  --max-memory=MB          a sentence whose chart needs more gets a fallback tree; every thread has a chart
                           for every grammar of the model [default: 1024]
  --threshold=P            prune what has a smaller share of the probability; 0 for no pruning [default: 3e-4]
  --pruning=KIND           that share: posterior or max-marginal [default: posterior]
  --samples=N              for the sampled objectives [default: 1000]
  --seed=N                 for the sampled objectives [default: 0]
  --correct                for the sampled objectives with a tsg model of one sample: accept or reject every
                           sample by the model itself instead of its frozen grammar
  --threads=N              the output is the same for any number [default: 1]
  -q, --quiet              no progress and no remarks
  -h, --help               this text
  --version                the version
"""

import contextlib
import io
import math
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from nltk.tokenize import TreebankWordTokenizer
from nltk.tree import Tree

from tsgkit.cli import choice, command, integer, number, parse_arguments
from tsgkit.errors import UsageError
from tsgkit.files import open_output
from tsgkit.models.model import Model
from tsgkit.models.tsg_predictive import DerivationCorrection
from tsgkit.options import optional_integer, seed_of
from tsgkit.parsing import Parse, Parser
from tsgkit.parsing.engine import OBJECTIVES, PRUNING
from tsgkit.parsing.lexical import TAG_MODES
from tsgkit.parsing.parser import Bracket, brackets_of
from tsgkit.parsing.product import PRODUCTS, ProductParser
from tsgkit.progress import progress
from tsgkit.treebank import read_trees
from tsgkit.treebank.brackets import format_tree
from tsgkit.treebank.sources import decode_lines
from tsgkit.treebank.trees import is_preterminal, preorder

Sentence = tuple[list[str], list[str | None] | None]
WORD = re.compile(r"[^ \t\r\n\f\v]+")
TAGGED_WORD = re.compile(r"(.+)(?<!\\)/([^/]+)", re.DOTALL)


def sentence_reader(arguments: dict[str, Any]) -> Callable[[str], Sentence]:
    """How a line of input becomes words and tags."""
    tagged = choice(arguments, "--tags", TAG_MODES) != "none"
    if arguments["--tokenize"]:
        if tagged:
            raise UsageError("--tokenize and --tags do not go together: tags come with words")
        tokenizer = TreebankWordTokenizer()
        return lambda line: (tokenizer.tokenize(line, convert_parentheses=True), None)
    if not tagged:
        return lambda line: (WORD.findall(line), None)
    return tagged_sentence


def tagged_sentence(line: str) -> Sentence:
    r"""Words and tags of ``word/TAG word/TAG``; what has not this form is a word without a tag.

    Examples
    --------
    >>> tagged_sentence(r"a/DT 1/2/CD either\/or / //:")
    (['a', '1/2', 'either\\/or', '/', '/'], ['DT', 'CD', None, None, ':'])
    """
    pairs = [(TAGGED_WORD.fullmatch(token), token) for token in WORD.findall(line)]
    words = [match[1] if match else token for match, token in pairs]
    return words, [match[2] if match else None for match, _ in pairs]


def with_confidence(tree: Tree, confidence: dict[Bracket, float]) -> Tree:
    """A tree with the posterior of every phrase at its label."""
    marked = tree.copy(deep=True)
    for node, bracket in zip(preorder(marked), brackets_of(marked), strict=True):
        if len(node) and not is_preterminal(node):
            node.set_label(f"{node.label()}={confidence.get(bracket, 0.0):.3f}")
    return marked


def format_parse(parse: Parse, sentence_number: int, arguments: dict[str, Any]) -> Iterator[str]:
    """The lines of output for a sentence."""
    many = arguments["--kbest"] > 1
    for rank, tree in enumerate(parse.trees, start=1):
        shown = with_confidence(tree, parse.confidence) if arguments["--confidence"] else tree
        text = format_tree(shown) if len(shown) else f"({shown.label()})"
        if arguments["--scores"]:
            log_probability = parse.log_probabilities[rank - 1] - parse.log_total if not parse.fallback else -math.inf
            columns = (sentence_number, rank, f"{log_probability:.6f}", f"{parse.scores[rank - 1]:.6f}")
            text = "\t".join(map(str, (*columns, parse.fallback or "ok", text)))
        yield f"{text}\n"
    if many:
        yield "\n"


@contextlib.contextmanager
def streaming_output(path: str) -> Iterator[TextIO]:
    """Where trees go: stdout gets each as it comes, a file appears whole or not at all."""
    if path != "-":
        with open_output(path) as file:
            yield file
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n", line_buffering=True)
    yield sys.stdout


def correction_of(arguments: dict[str, Any], model: Model) -> DerivationCorrection | None:
    """What corrects samples, if that is wanted."""
    if not arguments["--correct"]:
        return None
    if not arguments["--objective"].endswith("-sampled"):
        raise UsageError("--correct goes with a sampled objective, such as --objective=mer-sampled")
    return DerivationCorrection(model)


def report(fallbacks: Counter[str], n_sentences: int, seconds: float) -> None:
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(fallbacks.items()) if kind)
    without = sum(count for kind, count in fallbacks.items() if kind)
    rate = n_sentences / seconds if seconds else 0.0
    print(
        f"tsgkit: {n_sentences} sentences in {seconds:.1f} s ({rate:.1f} a second),"
        f" {without} with a fallback tree" + (f" ({kinds})" if kinds else ""),
        file=sys.stderr,
    )


def parser_of(arguments: dict[str, Any]) -> Parser:
    """The parser of the model, or of the product of models, that the options ask for."""
    options: dict[str, Any] = {
        "objective": choice(arguments, "--objective", OBJECTIVES),
        "threshold": number(arguments, "--threshold", 0, 0.999),
        "pruning": choice(arguments, "--pruning", PRUNING),
        "n_samples": integer(arguments, "--samples", 1),
        "max_bytes": integer(arguments, "--max-memory", 1) << 20,
        "max_length": optional_integer(arguments, "--max-length", 0),
        "tags": arguments["--tags"],
        "seed": seed_of(arguments),
    }
    product = choice(arguments, "--product", PRODUCTS)
    models = [Model.load(path) for path in arguments["MODEL"]]
    if len(models) == 1:
        return Parser(models[0], correction=correction_of(arguments, models[0]), **options)
    if options["objective"] != "max-rule" or arguments["--correct"]:
        raise UsageError("several models have an objective of their own: --product, without --objective and --correct")
    return ProductParser(models, product=product, **options)


@command
def main(argv: list[str]) -> int:
    arguments = parse_arguments(__doc__, argv)
    arguments["--kbest"] = integer(arguments, "--kbest", 1)
    read_sentence = sentence_reader(arguments)
    parser = parser_of(arguments)
    if arguments["--score"] is not None:
        with streaming_output(arguments["--output"]) as output:
            output.writelines(f"{parser.tree_log_probability(tree):.9f}\n" for tree in read_trees(arguments["--score"]))
        return 0
    threads = integer(arguments, "--threads", 1)
    started = time.perf_counter()
    fallbacks: Counter[str] = Counter()
    sentences = map(read_sentence, decode_lines(arguments["--input"], "utf-8"))
    with streaming_output(arguments["--output"]) as output:
        parses = parser.parse_batch(
            sentences, threads=threads, k=arguments["--kbest"], confidence=arguments["--confidence"]
        )
        for sentence_number, parse in enumerate(
            progress(parses, "parsing", "sentences", quiet=arguments["--quiet"]), 1
        ):
            output.writelines(format_parse(parse, sentence_number, arguments))
            fallbacks[parse.fallback] += 1
    if not arguments["--quiet"]:
        report(fallbacks, fallbacks.total(), time.perf_counter() - started)
    return 0


if __name__ == "__main__":
    sys.exit(main())
