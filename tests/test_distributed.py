"""Chains and parsing through joblib and on a real Dask cluster, whose workers are killed half-way."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import descendants, hear_interrupts, needs_proc, wait_until

from tsgkit._archive import read_archive
from tsgkit._tools import parse as parse_command
from tsgkit._tools import train as train_command
from tsgkit.distributed import _cluster as dask_cluster
from tsgkit.distributed import make_backend, outcome_of, require_same_version
from tsgkit.distributed._base import WINDOW, lost
from tsgkit.distributed._hub import HubLink
from tsgkit.errors import JobError, UsageError
from tsgkit.inference._chains import chain_path, chain_seeds
from tsgkit.parsing._lines import ParsePlan, parse_chunk, shared_models
from tsgkit.treebank import load

# One cluster for all of them.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cluster")]

SENTENCES = [f"{' '.join(tree.leaves())}\n" for tree in load("village", "dev")]
N_LINES = 800  # so many that a job is at work for a while
SECONDS = 600  # only a job that hangs takes so long


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, an input, and the output that all backends must give for it."""
    made = tmp_path_factory.mktemp("distributed")
    assert train_command.main(["-q", "--model=cfg", "--output", str(made / "cfg.model"), "village:train"]) == 0
    lines = (SENTENCES * (N_LINES // len(SENTENCES) + 1))[:N_LINES]
    (made / "input").write_text("".join(lines), encoding="utf-8")
    arguments = ["-q", "--scores", "-i", made / "input", "-o", made / "expected", made / "cfg.model"]
    assert parse_command.main([str(argument) for argument in arguments]) == 0
    return made


def start_parsing(folder, output, *options):
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "tsgkit", "parse", "--scores", "--chunk=5", *options),
            *("-i", folder / "input", "-o", output, folder / "cfg.model"),
        ],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_interrupts,  # noqa: PLW1509 - no threads
    )


def finished(process):
    """The talk of a process that has ended well."""
    _, talk = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, talk
    assert "Traceback" not in talk
    return talk


def written(output):
    partial = Path(f"{output}.partial")
    return partial.stat().st_size if partial.exists() else 0


# ---- joblib ----------------------------------------------------------------------------------------------


@pytest.fixture
def with_joblib():
    pytest.importorskip("joblib", reason="joblib is not installed")


@needs_proc
@pytest.mark.usefixtures("with_joblib")
def test_joblib_parses_the_same_and_survives_a_killed_process(folder, tmp_path):
    process = start_parsing(folder, tmp_path / "output", "--backend=joblib", "--jobs=2")
    wait_until(lambda: written(tmp_path / "output"), process)
    os.kill(descendants(process.pid, "loky")[-1], signal.SIGKILL)
    talk = finished(process)
    assert (tmp_path / "output").read_bytes() == (folder / "expected").read_bytes()
    assert sum(map(int, re.findall(r"tsgkit: (\d+) by process \d+", talk))) == N_LINES


@pytest.mark.usefixtures("with_joblib")
def test_joblib_trains_the_same(tmp_path, capsys):
    common = ["--model=tsg", "--iterations=8", "-q"]
    output = tmp_path / "m"
    chains = ["--chains=2", "--jobs=2", "--backend=joblib", f"--output={output}"]
    assert train_command.main([*common, *chains, "village:dev"]) == 0
    assert "has the highest log joint" in capsys.readouterr().out
    for number, seed in enumerate(chain_seeds(0, 2), start=1):
        alone = [f"--seed={seed}", "--force", f"--output={tmp_path / 'a'}"]
        assert train_command.main([*common, *alone, "village:dev"]) == 0
        assert (tmp_path / "a").read_bytes() == chain_path(output, number).read_bytes()


@pytest.mark.usefixtures("with_joblib")
def test_input_is_read_as_output_is_taken(folder):
    """A bounded number of chunks is under way, whatever the length of the input; and what precedes an error comes."""
    taken = []

    def chunks():
        for number in range(1000):
            taken.append(number)
            if number == 9:
                raise UsageError("no more")
            yield 2 * number, SENTENCES[:2]

    shared = shared_models(ParsePlan(), ["m"], [(folder / "cfg.model").read_bytes()])
    results = make_backend("joblib", jobs=1).stream(parse_chunk, shared, chunks())
    assert [len(lines) for _, lines in [next(results)]] == [2]
    assert len(taken) == WINDOW
    rest = []
    with pytest.raises(UsageError, match="no more"):
        rest.extend(results)
    assert len(taken) == 10


# ---- Dask ------------------------------------------------------------------------------------------------


class Cluster:
    """A scheduler and workers, each a process on this machine."""

    def __init__(self, folder):
        self.folder, self.file = folder, folder / "scheduler.json"
        self.processes = {}
        self.n_started = 0
        self.start("scheduler", "scheduler", "--host=127.0.0.1", "--port=0")
        wait_until(self.file.exists)

    def start(self, name, *words):
        command = [sys.executable, "-m", "dask", *words, "--no-dashboard", f"--scheduler-file={self.file}"]
        with open(self.folder / f"{name}.log", "w") as log:
            self.processes[name] = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)

    def start_worker(self):
        """Start another one; returns its name."""
        self.n_started += 1
        name = f"worker{self.n_started}"
        self.start(name, "worker", "--nthreads=1", "--no-nanny", f"--name={name}", "--host=127.0.0.1")
        return name

    def workers(self, number):
        """The names of all workers, after some were started or killed to have so many, whatever other tests left."""
        names = [name for name in self.processes if name != "scheduler"]
        for name in names[number:]:
            self.kill(name)
        names = names[:number] + [self.start_worker() for _ in range(number - len(names))]
        wait_until(lambda: all(self.has_begun(name) for name in names))
        return names

    def has_begun(self, name):
        return "Registered to" in (self.folder / f"{name}.log").read_text()

    def kill(self, name):
        process = self.processes.pop(name)
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    pytest.importorskip("distributed", reason="dask and distributed are not installed")
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    for name in list(made.processes):
        made.kill(name)


def on(cluster):
    return ["--backend=dask", f"--scheduler={cluster.file}"]


def test_a_killed_worker_loses_no_sentence(cluster, folder, tmp_path):
    stays, goes = cluster.workers(2)
    process = start_parsing(folder, tmp_path / "output", *on(cluster))
    wait_until(lambda: written(tmp_path / "output"), process)
    cluster.kill(goes)
    talk = finished(process)
    assert (tmp_path / "output").read_bytes() == (folder / "expected").read_bytes()
    by_worker = dict(re.findall(r"tsgkit: (\d+) by worker (\w+)", talk))
    assert sum(map(int, by_worker)) == N_LINES
    assert stays in by_worker.values()


def test_all_workers_are_killed_and_another_comes(cluster, folder, tmp_path):
    """The models that were sent are lost with the last worker, and sent again."""
    (only,) = cluster.workers(1)
    process = start_parsing(folder, tmp_path / "output", *on(cluster), "--jobs=3")
    wait_until(lambda: written(tmp_path / "output"), process)
    cluster.kill(only)
    another = cluster.start_worker()
    talk = finished(process)
    assert (tmp_path / "output").read_bytes() == (folder / "expected").read_bytes()
    assert re.search(rf"tsgkit: \d+ by worker {another}", talk)


def test_interrupted_on_a_cluster_and_resumed_here(cluster, folder, tmp_path):
    cluster.workers(1)
    process = start_parsing(folder, tmp_path / "output", *on(cluster))
    wait_until(lambda: written(tmp_path / "output"), process)
    process.send_signal(signal.SIGINT)
    _, talk = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert talk.endswith("tsgkit: interrupted\n")
    assert "--resume continues from there" in talk
    assert json.loads((tmp_path / "output.partial.json").read_text())["n_done"] > 0
    arguments = ["--resume", "-q", "--scores", "-i", folder / "input", "-o", tmp_path / "output", folder / "cfg.model"]
    assert parse_command.main([str(argument) for argument in arguments]) == 0
    assert (tmp_path / "output").read_bytes() == (folder / "expected").read_bytes()


def test_a_chain_goes_on_when_its_worker_is_killed(cluster, tmp_path):
    (only,) = cluster.workers(1)
    common = ["--model=tsg", "--iterations=150", "--checkpoint-every=10", "village:dev"]
    process = subprocess.Popen(
        [sys.executable, "-m", "tsgkit", "train", *common, "--chains=2", *on(cluster), "--output=m"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: list(tmp_path.glob("m.checkpoint.chain*")), process)
    cluster.kill(only)
    cluster.start_worker()
    table, talk = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, talk
    assert "has the highest log joint" in table
    for number, seed in enumerate(chain_seeds(0, 2), start=1):
        assert train_command.main([*common, "-q", f"--seed={seed}", "--force", f"--output={tmp_path / 'alone'}"]) == 0
        assert (tmp_path / "alone").read_bytes() == chain_path(tmp_path / "m", number).read_bytes()


def test_ctrl_c_stops_chains_on_a_cluster(cluster, tmp_path):
    cluster.workers(1)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "tsgkit", "train", "--model=tsg", "--iterations=1000000", "--chains=2"),
            *(*on(cluster), "--jobs=1", "--output=m", "village:dev"),
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_interrupts,  # noqa: PLW1509 - no threads
    )
    wait_until(lambda: list(tmp_path.glob("m.checkpoint.chain*")), process)
    process.send_signal(signal.SIGINT)
    table, talk = process.communicate(timeout=SECONDS)
    assert (process.returncode, table) == (130, "")
    assert "tsgkit: interrupted; --resume continues from there" in talk
    assert "Traceback" not in talk
    assert read_archive(tmp_path / "m.checkpoint.chain01", "checkpoint", 1)[0]["iteration"] > 0
    assert not (tmp_path / "m.chain02").exists()


def test_learning_from_raw_text_on_a_cluster_is_the_same(cluster, tmp_path):
    cluster.workers(1)
    (tmp_path / "text").write_text("".join(SENTENCES), encoding="utf-8")
    common = ["-q", "--model=tsg", "--iterations=4", "--average=1", "--raw=text", "--teachers=2", "--raw-sentences=20"]
    for name, options in (("here", []), ("there", [*on(cluster), "--jobs=2"])):
        command = [sys.executable, "-m", "tsgkit", "train", *common, *options, f"--output={name}", "village:dev"]
        subprocess.run(command, cwd=tmp_path, check=True, timeout=SECONDS)
    assert (tmp_path / "here").read_bytes() == (tmp_path / "there").read_bytes()


def test_no_scheduler_and_no_worker(cluster, monkeypatch, tmp_path):
    monkeypatch.setattr(dask_cluster, "SECONDS_FOR_WORKERS", 0.5)
    with pytest.raises(UsageError, match="no Dask scheduler answers there"):
        make_backend("dask", scheduler="tcp://127.0.0.1:9")
    with pytest.raises(UsageError, match="no Dask scheduler answers there"):
        make_backend("dask", scheduler=str(tmp_path / "missing.json"))
    cluster.workers(0)
    with pytest.raises(UsageError, match="it has no workers"):
        make_backend("dask", scheduler=str(cluster.file))


# ---- a sentence that kills its workers ---------------------------------------------------------------------------

# Workers and their children import this at their start: a sentence with the word POISON kills whatever parses it.
POISON = """
import os, signal
from tsgkit.parsing._parser import Parser
analyse = Parser.analyse

def deadly(self, words, *rest, **options):
    if "POISON" in words and self.settings.max_length != 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return analyse(self, words, *rest, **options)

Parser.analyse = deadly
"""


@pytest.fixture
def poisoned(tmp_path, monkeypatch, folder):
    """Where workers meet a deadly sentence."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(POISON)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    lines = [*SENTENCES[:8], "he saw POISON .\n", *SENTENCES[8:11]]
    (tmp_path / "input").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "harmless").write_text("".join(lines).replace("POISON", "it"), encoding="utf-8")
    return tmp_path


def parse_poison(folder, poisoned, *options):
    """Parse, and compare all trees but that of the deadly sentence with those of a job without them."""
    model = folder / "cfg.model"
    common = [sys.executable, "-m", "tsgkit", "parse", "--chunk=6", str(model)]
    subprocess.run([*common, "-q", "-i", "harmless", "-o", "wanted"], cwd=poisoned, check=True)
    done = subprocess.run(
        [*common, "-i", "input", "-o", "found", *options],
        cwd=poisoned,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert "sentence 9: the process that parsed it was killed by signal 9 (Killed); it has a flat tree" in done.stderr
    assert done.stderr.count("; it has a flat tree") == 1
    found, wanted = ((poisoned / name).read_text().splitlines() for name in ("found", "wanted"))
    assert [number for number, (one, other) in enumerate(zip(found, wanted, strict=True)) if one != other] == [8]
    assert found[8].count("POISON") == 1


def test_a_deadly_sentence_on_a_cluster(poisoned, folder):
    """Each worker restarts when it was killed, as those of `dask worker` do."""
    pytest.importorskip("distributed", reason="dask and distributed are not installed")
    made = Cluster(poisoned)
    try:
        made.start("worker", "worker", "--nworkers=2", "--nthreads=1", "--nanny", "--host=127.0.0.1")
        parse_poison(folder, poisoned, *on(made))
    finally:
        for name in list(made.processes):
            made.kill(name)


@pytest.mark.usefixtures("with_joblib")
def test_a_deadly_sentence_in_processes_of_joblib(poisoned, folder):
    parse_poison(folder, poisoned, "--backend=joblib", "--jobs=2")


# ---- all -------------------------------------------------------------------------------------------------


def test_another_version_is_refused():
    with pytest.raises(UsageError, match="install the same on both"):
        require_same_version("0.0.0")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (UsageError("wrong"), "wrong"),
        (OSError(28, "full"), "full"),
        (MemoryError(), "not enough memory"),
        (KeyError(3), "Traceback"),
    ],
)
def test_what_goes_wrong_in_a_task_becomes_its_answer(error, message):
    class Quiet:
        def stopped(self):
            return False

    def fails(shared, item, link):
        raise error

    assert message in outcome_of(fails, {}, None, Quiet())["error"]


def test_a_task_stops_when_nobody_listens():
    assert HubLink("/nowhere/at/all", b"key", 0).stopped()


def test_a_backend_that_is_not_installed(monkeypatch):
    for name, scheduler in (("joblib", None), ("dask", "tcp://127.0.0.1:9")):
        monkeypatch.setitem(sys.modules, "joblib" if name == "joblib" else "distributed", None)
        with pytest.raises(UsageError, match="not installed: pip install"):
            make_backend(name, scheduler=scheduler)


def test_lost_workers_are_no_fault_of_the_options():
    assert isinstance(lost("part 3 of the input", "a worker"), JobError)
