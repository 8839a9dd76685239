"""The output of the C program EVALB, byte for byte."""

import re
from dataclasses import replace

import pytest

from tsgkit.evaluation import evaluate, load_parameters


@pytest.fixture(scope="module")
def references(treebanks):
    folder = treebanks.parent / "evalb"
    if not folder.is_dir():
        pytest.skip("beside the folder in TSGKIT_TREEBANKS there is no folder evalb")
    return folder


@pytest.mark.parametrize("params", ["collins", "new"])
@pytest.mark.parametrize("name", ["parsed", "quirks"])
class TestReferences:
    def test_command_prints_the_same_bytes(self, references, tsgkit, name, params):
        done = tsgkit("eval", f"--params={params}", references / f"{name}.gold", references / f"{name}.test")
        expected = (references / f"{name}.{params}.out").read_text()
        assert done.stdout.startswith(expected)
        assert done.stdout[len(expected) :].startswith("\n=== Strict")

    def test_same_sentences_are_in_error(self, references, name, params):
        parameters = replace(load_parameters(params), max_error=10_000)
        evaluation = evaluate(references / f"{name}.gold", references / f"{name}.test", parameters, stop_on_errors=True)
        errors = (references / f"{name}.{params}.err").read_text()
        lines = [int(line) for line in re.findall(r"^(\d+) : ", errors, re.MULTILINE)]
        assert [problem.line for problem in evaluation.problems] == lines
        n_length_errors = sum(problem.kind == "length differs" for problem in evaluation.problems)
        assert n_length_errors == errors.count("Length")
