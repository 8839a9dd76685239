"""The Berkeley parser, trained and scored on the same trees as ours; finished runs are not repeated.

The number of split-merge cycles is chosen on dev, since the parser overfits small treebanks with many.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from nltk.tree import Tree

from tsgkit.errors import UsageError
from tsgkit.evaluation import evaluate
from tsgkit.treebank import write_trees

from ..bench.commands import processor_seconds, read_output, write_sentences
from .lab import Figures, read_figures, write_figures
from .treebanks import Parts

JAR = "BERKELEY_JAR"
TRAINER = "edu.berkeley.nlp.PCFGLA.GrammarTrainer"
# The threads of a parallel garbage collector would count as processor time.
JAVA = ("java", "-XX:+UseSerialGC", "-Xmx3g")
CYCLES = 4


def berkeley_jar() -> str | None:
    """The file of the parser, if the environment names one."""
    jar = os.environ.get(JAR) or None
    if jar is not None and not os.path.isfile(jar):
        raise UsageError(f"{JAR}={jar}: no such file")
    return jar


def berkeley_run(jar: str, path: Path, trees: Sequence[Tree], parts: Parts, *, seed: int) -> Figures:
    """The scores of one training, on test with the number of cycles that is best on dev."""
    figures, grammar = read_figures(path), path.with_suffix(".gr")
    if "seconds" not in figures:
        source = path.with_suffix(".mrg")
        write_trees(trees, source)
        options = ("-path", str(source), "-out", str(grammar), "-treebank", "SINGLEFILE", "-SMcycles", str(CYCLES))
        program = [*JAVA, "-cp", jar, TRAINER, *options, "-randSeed", str(seed)]
        figures = {"seconds": processor_seconds(program), "trees": len(trees)}
        write_figures(path, figures)
    for cycle in range(1, CYCLES + 1):
        if f"dev {cycle}" not in figures:
            figures[f"dev {cycle}"] = score(jar, Path(f"{grammar}_{cycle}_smoothing.gr"), parts.dev)
            write_figures(path, figures)
    if "test" not in figures:
        best = max(range(1, CYCLES + 1), key=lambda cycle: figures[f"dev {cycle}"]["f1"])
        figures |= {"cycles": best, "test": score(jar, Path(f"{grammar}_{best}_smoothing.gr"), parts.test)}
        write_figures(path, figures)
    return figures


def score(jar: str, grammar: Path, gold: Sequence[Tree]) -> Figures:
    """F1 and tagging accuracy of a grammar on the sentences of these trees."""
    sentences, output = grammar.with_suffix(".txt"), grammar.with_suffix(".parsed")
    write_sentences(sentences, [tree.leaves() for tree in gold])
    program = [*JAVA, "-jar", jar, "-gr", str(grammar), "-inputFile", str(sentences), "-outputFile", str(output)]
    seconds = processor_seconds(program)
    evaluation = evaluate(gold, read_output(output))
    return {
        "f1": evaluation.f1,
        "strict": evaluation.strict.f1,
        "tags": evaluation.strict.tagging_accuracy,
        "rate": len(gold) / seconds,
    }
