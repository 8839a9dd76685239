"""Train symbol-refined grammars by several settings and seeds, and score them.

Usage:
  tsgkit.tools.bench.srtsg [options]
  tsgkit.tools.bench.srtsg -h | --help | --version

Run it as ``python -m tsgkit.tools.bench.srtsg``. It trains on one treebank and parses another: of the WSJ sample if
the environment variable TSGKIT_TREEBANKS names the folder it is in, else of the bundled one. What was interrupted
goes on with the same command; what is done is not done again.

Options:
  --train=TREEBANK       What to train on, as for `tsgkit prepare`.
  --dev=TREEBANK         What to parse.
  --test=TREEBANK        What to parse besides; nothing unless given.
  --folder=PATH          Where models and figures of finished runs are kept [default: build/exp-srtsg].
  --only=NAMES           Only these settings, separated by commas.
  --splits=N             How often every subcategory is split [default: 4].
  --split-iterations=N   Sweeps after every split [default: 200].
  --site-iterations=N    Sweeps over sites, where they are sampled [default: 300].
  --unknown=MODEL        Classes of words: unicode or signature [default: unicode].
  --seeds=N              Seeds for each setting [default: 3].
  --quiet                No progress.
  -h --help              This text.
  --version              The version.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from nltk.tree import Tree

from tsgkit.cli import EXIT_FAILED, command, integer, parse_arguments
from tsgkit.errors import UsageError
from tsgkit.evaluation import evaluate
from tsgkit.evaluation.report import columns
from tsgkit.inference.checkpoint import checkpoint_path
from tsgkit.inference.loop import Run
from tsgkit.inference.srtsg import SrSettings, SrTraining
from tsgkit.models.model import Model
from tsgkit.parsing import Parser
from tsgkit.treebank import Binarization, UnknownWords, prepare

from .markovisation import treebank_of
from .parse import read_treebank

HEAD = ("setting", "treebank", "F1", "lowest", "highest", "tags", "rules", "train CPU s", "sentences/CPU s")
N_LEFT = 2


def variants(splits: int, split_iterations: int, site_iterations: int) -> dict[str, dict[str, Any]]:
    """The settings by name: the paper's ablations, and the stages."""
    usual: dict[str, Any] = {"splits": splits, "split_iterations": split_iterations, "joint_iterations": 0}
    joint = usual | {"joint_iterations": site_iterations}
    return {
        "subcategories": usual,
        "subcategories-levels=2": usual | {"levels": 2},
        "sites": usual | {"site_iterations": site_iterations},
        "joint": joint,
        "joint-levels=2": joint | {"levels": 2},
        "joint-levels=1": joint | {"levels": 1},
        "no-merge": joint | {"merge": 0.0},
        "joint-loss": joint | {"merge_loss": "joint"},
        "type-moves": joint | {"type_moves": 500},
        "frequency-base": joint | {"base": "frequency"},
        "count<=5": joint,
    }


def result_of(output: Path, training: SrTraining, test: dict[str, list[Tree]], quiet: bool) -> dict[str, Any] | None:
    """The figures of a run, kept from before or made now; None if it was interrupted."""
    kept = output.with_suffix(".json")
    result = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    if not result:
        is_whole = not checkpoint_path(output).exists()
        started = time.process_time()
        run = Run(training, output, training.settings.iterations, resume=True, quiet=quiet)
        model = run.run()
        if run.interrupted:
            return None
        result = {"seconds": time.process_time() - started if is_whole else None, "rules": model.grammar.n_rules}
        checkpoint_path(output).unlink()
    for name, gold in test.items():
        if name not in result:
            result[name] = score_of(Model.load(output), gold)
    kept.write_text(json.dumps(result), encoding="utf-8")
    return result


def score_of(model: Model, gold: list[Tree]) -> dict[str, float]:
    """How well and how fast a model parses the sentences of these trees."""
    parser = Parser(model)
    started = time.process_time()
    parses = list(parser.parse_batch([(tree.leaves(), None) for tree in gold]))
    seconds = time.process_time() - started
    score = evaluate(gold, [parse.tree for parse in parses])
    return {
        "f1": score.f1,
        "strict": score.strict.f1,
        "tags": score.strict.tagging_accuracy,
        "rate": len(gold) / seconds,
        "fallbacks": sum(bool(parse.fallback) for parse in parses),
    }


def row_of(name: str, treebank: str, results: list[dict[str, Any]]) -> tuple[str, ...]:
    """A line of the table: means over seeds, and the spread of F1."""
    f1 = [result[treebank]["f1"] for result in results]
    seconds = [result["seconds"] for result in results if result["seconds"] is not None]
    return (
        *(name, treebank, f"{np.mean(f1):.2f}", f"{min(f1):.2f}", f"{max(f1):.2f}"),
        f"{np.mean([result[treebank]['tags'] for result in results]):.2f}",
        f"{np.mean([result['rules'] for result in results]):.0f}",
        f"{np.mean(seconds):.0f}" if seconds else "-",
        f"{np.mean([result[treebank]['rate'] for result in results]):.1f}",
    )


@command
def main(argv: list[str]) -> int:
    """Train and score what is missing; print the table of all."""
    arguments = parse_arguments(__doc__, argv)
    treebank = treebank_of(arguments["--train"], arguments["--dev"])
    numbers = [integer(arguments, f"--{name}", 1) for name in ("splits", "split-iterations", "site-iterations")]
    chosen = variants(*numbers)
    if arguments["--only"] is not None:
        unknown = set(arguments["--only"].split(",")) - set(chosen)
        if unknown:
            raise UsageError(f"--only: no setting {', '.join(sorted(unknown))}; there are {', '.join(chosen)}")
        chosen = {name: chosen[name] for name in arguments["--only"].split(",")}
    test = {"dev": treebank.gold}
    if arguments["--test"] is not None:
        test["test"] = read_treebank("test", arguments["--test"], arguments["--test"]).gold
    folder = Path(arguments["--folder"])
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, options in chosen.items():
        threshold = 5 if name == "count<=5" else 0
        unknown_words = UnknownWords(arguments["--unknown"], threshold)
        corpus = prepare(treebank.train, binarization=Binarization("right", 0), unknown=unknown_words)
        results = []
        for seed in range(1, integer(arguments, "--seeds", 1) + 1):
            output = folder / f"{name.replace('<=', '')}-{seed}.model"
            training = SrTraining(corpus, SrSettings(**options), seed=seed)
            result = result_of(output, training, test, arguments["--quiet"])
            if result is None:
                print("tsgkit: interrupted; the same command goes on from there", file=sys.stderr)
                return EXIT_FAILED
            results.append(result)
        rows += [row_of(name, each, results) for each in test]
    print(f"trained on {len(treebank.train)} trees ({treebank.name})")
    print(columns(HEAD, rows, N_LEFT), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(None))
