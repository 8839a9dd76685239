"""What insertion adds to a symbol-refined grammar: sites, subcategories and insertions sampled jointly, or without.

Usage:
  tools.bench.refined_insertion [options]
  tools.bench.refined_insertion -h | --help | --version

Run it as ``python -m tools.bench.refined_insertion`` with NLTK_DATA set. After an interruption the same command
continues. The runs are two settings of the experiment shindo2012, ``joint`` and ``insertion``, which have equally many
sweeps after the splits; with its folder, its runs are not repeated.

Options:
  --treebank=NAME    As of the experiments [default: nltk].
  --scale=NAME       smoke, small or full [default: small].
  --folder=PATH      Folder for the models and scores of finished runs; build/experiments/... by default.
  --seeds=N          Number of runs of each setting [default: 3].
  --jobs=N           Number of runs in parallel [default: 1].
  --record=FILE      Write the tables to this file of recorded runs (JSON).
  --quiet            Do not report progress.
  -h --help          This text.
  --version          The version.
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np

from tsgkit._cli import command, integer, parse_arguments
from tsgkit.errors import UsageError
from tsgkit.evaluation._report import columns
from tsgkit.models._model import Model
from tsgkit.models._subcategories import FEET

from ..experiments.lab import Figures, Lab, score_key
from ..experiments.page import Table, write_record
from ..experiments.shindo2011 import auxiliary_trees
from ..experiments.shindo2012 import SCALES, jobs_of

HEAD = ("grammar", "seed", "dev F1", "log joint", "fragments", "auxiliary trees", "insertions", "rules", "CPU s")
N_BESIDE = 12
NAMES = {"joint": "without insertion", "insertion": "with insertion"}


def row_of(name: str, seed: int, figures: Figures) -> list[str]:
    """A line of the table; quantities of the sampler are those of the last sample."""
    history = figures["history"]
    counts = (history.get(quantity, [0.0])[-1] for quantity in ("fragments", "auxiliary", "insertions"))
    seconds = "-" if figures["seconds"] is None else f"{figures['seconds']:.0f}"
    f1, log_joint = f"{figures[score_key('dev')]['f1']:.2f}", f"{history['log_joint'][-1]:.0f}"
    return [name, str(seed), f1, log_joint, *(f"{count:.0f}" for count in counts), str(figures["rules"]), seconds]


def beside_feet(path: Path) -> Counter[str]:
    """How often every label stands beside the foot of an insertion, in the last sample."""
    model = Model.load(path)
    corpus, feet = model.corpus, model.state[FEET]
    if corpus is None:
        raise UsageError(f"{path}: the model does not keep its training trees")
    nodes = np.flatnonzero(feet)
    siblings = corpus.child[corpus.child_start[nodes] + 2 - feet[nodes]]
    return Counter(corpus.labels[label] for label in corpus.label[siblings].tolist())


@command
def main(argv: list[str]) -> int:
    """Train and score the runs that are missing; print the tables and record them."""
    arguments = parse_arguments(__doc__, argv)
    lab = Lab.of(arguments, "shindo2012")
    scale = SCALES[lab.scale]
    n_seeds = min(integer(arguments, "--seeds", 1), scale.seeds)
    jobs = {name: own[:n_seeds] for name, own in jobs_of(scale, True, set(NAMES)).items()}
    runs = lab.run(job for own in jobs.values() for job in own)
    rows = [row_of(NAMES[name], job.seed, runs[job.stem]) for name, own in jobs.items() for job in own]
    for name, own in jobs.items():
        mean = np.mean([runs[job.stem][score_key("dev")]["f1"] for job in own])
        rows.append([f"{NAMES[name]}, mean", "-", f"{mean:.2f}", *["-"] * 6])
    found = list(auxiliary_trees(lab.model(jobs["insertion"][0].stem), lexicalised=False))
    beside = [[name, str(n)] for name, n in beside_feet(lab.model(jobs["insertion"][0].stem)).most_common(N_BESIDE)]
    tables = [
        Table("refined", list(HEAD), rows, 1),
        Table("refined-auxiliary", ["tree", "side", "count"], found, 2),
        Table("refined-beside", ["beside the foot", "insertions"], beside, 1),
    ]
    for table in tables:
        print(columns(table.head, table.rows, table.n_left))
    if arguments["--record"] is not None:
        used = (
            f"python -m tools.bench.refined_insertion --scale={lab.scale} --treebank={lab.treebank} --seeds={n_seeds}"
        )
        write_record(Path(arguments["--record"]), used, runs, tables)
    return 0


if __name__ == "__main__":
    sys.exit(main(None))
