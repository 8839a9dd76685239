"""Well-formed models that are hostile: bounded work and memory, no crash, no recursion; each was a fault once.

Every model is parsed by the command in a process whose memory is limited.
"""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from commands import run_forked
from fuzz import grammars
from processes import hear_interrupts, memory_limit, wait_until

from tsgkit.grammar._components import LARGEST_CYCLE
from tsgkit.parsing import Parser
from tsgkit.parsing.objectives import OBJECTIVES

MEMORY = 1 << 30
# Long enough for a machine with ten times as much to do: what is tested is that there is an end.
SECONDS = 300


def parse(model, folder, *options, text="a\n", memory=MEMORY):
    """The output of the command."""
    (done,) = parse_each(model, folder, [options], text, memory)
    return done


def parse_each(model, folder, all_options, text="a\n", memory=MEMORY):
    """The output of the command with each of several sets of options."""
    model.save(folder / "hostile.model")
    commands = [["parse", *options, "hostile.model"] for options in all_options]
    finished = run_forked(commands, folder, text, timeout=SECONDS, **memory_limit(memory))
    for done in finished:
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
    return finished


def test_a_long_chain(tmp_path):
    """The k best recursed, and choosing a tree took memory by the square of its length."""
    model = grammars.model_of(grammars.grammar_of(*grammars.chain(30_000)))
    common = ("--kbest=2", "--samples=20", "--confidence")
    for done in parse_each(model, tmp_path, [(f"--objective={name}", *common) for name in OBJECTIVES.names]):
        assert done.stdout.count("(") == 30_000
        assert "0 with a fallback tree" in done.stderr


def test_a_longer_chain_in_little_memory(tmp_path):
    """It took 7.8 GB, of which --max-memory knew nothing."""
    model = grammars.model_of(grammars.grammar_of(*grammars.chain(60_000)))
    done = parse(model, tmp_path, "--score=-", text="(L0 (L1 a))\n", memory=700 << 20)
    assert done.stdout == "-inf\n"
    done = parse(model, tmp_path, "--max-memory=64", memory=700 << 20)
    assert done.stdout.count("(") == 60_000


def test_a_cycle_that_is_hardly_ever_left(tmp_path):
    """Samples went round until memory was full."""
    n, label, rules = grammars.ring(2, 1 - 2e-12)
    model = grammars.model_of(grammars.grammar_of(n, label, rules))
    objectives = ("max-rule", "mer-sampled", "mpp-sampled", "mpp")
    for done in parse_each(model, tmp_path, [(f"--objective={name}", "--max-memory=64") for name in objectives]):
        assert "(L" in done.stdout


@pytest.mark.parametrize("kind", ["unary", "bridge"])
def test_scoring_a_tree_with_such_a_cycle(kind):
    """The sum over ways round a cycle of bridges had as many terms as it takes to become small."""
    n, label, rules = grammars.ring(3, 1 - 2e-12, kind)
    parser = Parser(grammars.model_of(grammars.grammar_of(n, label, rules)), objective="mpd")
    result = parser.analyse(["a"], k=3)
    assert len(result.trees) == (3 if kind == "unary" else 1)
    assert np.isfinite(result.log_probabilities).all()
    if kind == "bridge":
        # One tree: its probability is that of the words.
        assert result.log_probabilities[0] == pytest.approx(result.log_total, rel=1e-9)


def test_values_that_underflow(tmp_path):
    """A node had a value, but none of its rules made one: the process crashed."""
    tiny = 1e-300
    rules = {
        "unary": [(0, 1, tiny), (1, 2, tiny), (2, 3, tiny), (3, 4, tiny)],
        "binary": [(0, 4, 4, tiny), (4, 4, 4, tiny), (0, 0, 4, 1e300)],
        "lexical": [(4, word, tiny) for word in range(3)],
    }
    model = grammars.model_of(grammars.grammar_of(5, list(range(5)), rules))
    all_options = [(f"--objective={name}", "--samples=10") for name in OBJECTIVES.names]
    for done in parse_each(model, tmp_path, all_options, text="a\na b\na b c a\n"):
        assert [line.count(")") >= 2 for line in done.stdout.splitlines()] == [True] * 3


def test_very_many_chains_over_a_word():
    """The sum over all trees, of which each tree has a share, went through every chain of forty labels."""
    n, label, rules = grammars.dense(40, 0.999)
    parser = Parser(grammars.model_of(grammars.grammar_of(n, label, rules)), threshold=0.0, max_seconds=SECONDS)
    result = parser.analyse(["a"], k=2)
    assert not result.fallback
    assert all(0.0 <= share <= 1.0 for share in result.shares)


def test_rings_of_cycles(tmp_path):
    """Closing ten of them took two minutes and 2.3 GB."""
    size, rules = LARGEST_CYCLE, {"unary": [], "lexical": []}
    for first in range(0, 4 * size, size):
        _, _, own = grammars.ring(size, 0.5)
        rules["unary"] += [(first + x, first + y, weight) for x, y, weight in own["unary"]]
    rules["unary"].append((0, size, 0.1))
    rules["lexical"] = [(x, 0, 1e-3) for x in range(0, 4 * size, 7)]
    model = grammars.model_of(grammars.grammar_of(4 * size, list(range(4 * size)), rules))
    parse(model, tmp_path, "--objective=mpd")


def masked_ring(size):
    """A ring of which the coarser grammar forbids one label, in every cell."""
    n, label, rules = grammars.ring(size, 1 - 1e-9)
    rules["unary"] += [(x, (x + 2) % n, 1e-12) for x in range(0, n, 3)]
    rules["binary"] = [(0, 0, 0, 0.1)]
    fine = grammars.grammar_of(n, label, rules)
    label_map = np.zeros(n, dtype=np.int32)
    label_map[n // 2] = 1
    coarse = {"lexical": [(0, word, 0.5) for word in range(3)], "binary": [(0, 0, 0, 0.5)]}
    return grammars.model_of(grammars.grammar_of(2, [0, 1], coarse), fine, maps=(label_map,))


def test_a_ring_that_is_masked_in_part(tmp_path):
    """Single steps were repeated a hundred thousand times in every cell."""
    done = parse(masked_ring(120), tmp_path, "--kbest=2", text="a b c a b c a b\n")
    assert "0 with a fallback tree" in done.stderr


@pytest.mark.skipif(not hasattr(os, "kill"), reason="no signals here")
@pytest.mark.parametrize("threads", ["1", "2"])
def test_interrupting_a_sentence(threads, tmp_path):
    """Ctrl-C in the middle of a chart that would take minutes ends the command at once."""
    masked_ring(1000).save(tmp_path / "hostile.model")
    command = [sys.executable, "-m", "tsgkit", "parse", "-q", f"--threads={threads}", "--max-memory=4000"]
    with subprocess.Popen(
        [*command, str(tmp_path / "hostile.model")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, preexec_fn=hear_interrupts,  # noqa: PLW1509 - no threads
    ) as process:  # fmt: skip
        process.stdin.write(" ".join("abc"[number % 3] for number in range(150)) + "\n")
        process.stdin.close()
        # At work once it has used more processor time than starting takes.
        wait_until(lambda: seconds_of(process.pid) > 4.0, process, seconds=SECONDS)
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        code = process.wait(timeout=SECONDS)
        assert (code, process.stderr.read().strip()) == (130, "tsgkit: interrupted")
        # What was left of the sentence is many times more than this.
        assert time.monotonic() - started < SECONDS / 2


def seconds_of(pid):
    """The processor time of a process."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_many_labels_in_one_cell(tmp_path):
    """Rules of a cell were looked through for every rule; posteriors of insertion went through all labels."""
    n = 20_000
    rules = {
        "unary": [(0, x, 1 / n) for x in range(1, n)],
        "lexical": [(x, 0, 0.5) for x in range(1, n)],
    }
    model = grammars.model_of(grammars.grammar_of(n, list(range(n)), rules))
    all_options = [(f"--objective={name}", "--kbest=3", "--confidence") for name in ("max-rule", "mer", "mpp")]
    for done in parse_each(model, tmp_path, all_options):
        assert "0 with a fallback tree" in done.stderr


def test_a_symbol_that_stands_for_any_of_many_labels(tmp_path):
    n = 5_000
    bare = n
    rules = {
        "binary": [(0, x, bare, 1 / n) for x in range(1, n)] + [(x, x, bare, 1e-4) for x in range(1, 50)],
        "bridge": [(bare, x, 1 / n) for x in range(1, n)],
        "lexical": [(x, word, 0.2) for x in range(1, n) for word in range(3)],
    }
    model = grammars.model_of(grammars.grammar_of(n + 1, [*range(n), -1], rules))
    done = parse(model, tmp_path, text="a b c\n")
    assert "0 with a fallback tree" in done.stderr


def test_no_derivation_with_many_symbols(tmp_path):
    """The parts that a fallback is glued of were looked for in Python."""
    n = 20_000
    rules = {"unary": [(x, x + 1, 0.5) for x in range(1, n - 1)], "lexical": [(n - 1, word, 0.5) for word in range(3)]}
    model = grammars.model_of(grammars.grammar_of(n, list(range(n)), rules))
    done = parse(model, tmp_path, text="a b c " * 8 + "\n", memory=2 * MEMORY)
    assert "1 with a fallback tree (1 glued)" in done.stderr
