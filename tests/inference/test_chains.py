"""Chains: each as if it were alone, none lost with another, and the best of them chosen."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import descendants, hear_interrupts, needs_proc, wait_until

from tsgkit._archive import read_archive
from tsgkit._locks import sole_writer
from tsgkit.distributed import Backend, Outcome, outcome_of
from tsgkit.errors import JobError, OverwriteError
from tsgkit.inference._chains import Chains, Plan, chain_path, chain_seeds
from tsgkit.inference._checkpoint import beside, checkpoint_path
from tsgkit.inference._insertion import InsertionSettings
from tsgkit.inference._srtsg import SrSettings
from tsgkit.inference._tsg import TsgSettings
from tsgkit.models._model import Model
from tsgkit.treebank import Binarization, UnknownWords, load, prepare

TSG = Plan(TsgSettings(iterations=20, average=2, average_every=3), checkpoint_every=3)
COMMAND = [sys.executable, "-m", "tsgkit", "train", "--model=tsg", "--average=2", "--chains=2", "--jobs=2"]


@pytest.fixture(scope="module")
def corpus():
    return prepare(load("village", "dev"), binarization=Binarization("right", 0), unknown=UnknownWords())


class Here(Backend):
    """Tasks one after the other in this process; `stop` after so many reports if asked to."""

    def __init__(self, stop_at=None):
        super().__init__()
        self.is_stopped, self.stop_at = False, stop_at

    def gather(self, task, shared, items, on_message):
        for index, item in enumerate(items):
            self.report = lambda message, index=index: self.hear(index, message, on_message)
            yield Outcome(index, **outcome_of(task, shared, item, self))

    def hear(self, index, message, on_message):
        on_message(index, message)
        if message["done"] == self.stop_at:
            self.stop()

    def stream(self, task, shared, items):
        raise AssertionError("chains are no stream")

    def stopped(self):
        return self.is_stopped

    def stop(self):
        self.is_stopped = True


def chains_of(corpus, folder, plan=TSG, **options):
    return Chains(plan, corpus, folder / "m", seed=5, n_chains=3, quiet=True, **options)


def alone(corpus, folder, number, plan=TSG):
    """The bytes of a chain's model, trained without the others."""
    path = folder / f"alone{number}"
    plan.run(corpus, chain_seeds(5, number)[-1], path, quiet=True).run()
    return path.read_bytes()


def test_seeds_differ_and_do_not_depend_on_their_number():
    seeds = chain_seeds(7, 100)
    assert len(set(seeds)) == 100
    assert chain_seeds(7, 3) == seeds[:3]
    assert all(0 <= seed < 1 << 63 for seed in seeds)
    assert not set(seeds) & set(chain_seeds(8, 100))


@pytest.mark.parametrize(
    "plan",
    [
        TSG,
        Plan(InsertionSettings(iterations=5), threads=2),
        Plan(SrSettings(splits=1, split_iterations=6, joint_iterations=4, average=2)),
    ],
    ids=["tsg", "insertion", "srtsg"],
)
def test_a_chain_is_the_run_of_its_seed(corpus, tmp_path, plan):
    assert Plan.from_dict(plan.to_dict()) == plan
    chains = chains_of(corpus, tmp_path, plan)
    assert [chain.number for chain in chains.run(Here())] == [1, 2, 3]
    assert chains.finished == chains.chains
    for number in (1, 3):
        assert chain_path(tmp_path / "m", number).read_bytes() == alone(corpus, tmp_path, number, plan)


def test_a_dead_chain_is_finished_by_resuming(corpus, tmp_path):
    checkpoint = checkpoint_path(chain_path(tmp_path / "m", 2))
    chains = chains_of(corpus, tmp_path, resume=True)
    checkpoint.mkdir()
    dead = [chain for chain in chains.run(Here()) if chain.error]
    assert [(chain.number, "folder" in chain.error or "directory" in chain.error) for chain in dead] == [(2, True)]
    assert [chain.number for chain in chains.finished] == [1, 3]
    checkpoint.rmdir()
    again = chains_of(corpus, tmp_path, resume=True)
    list(again.run(Here()))
    assert [chain.number for chain in again.finished] == [1, 2, 3]
    for number in (1, 2, 3):
        assert chain_path(tmp_path / "m", number).read_bytes() == alone(corpus, tmp_path, number)


def test_interrupted_chains_go_on_where_they_were(corpus, tmp_path):
    chains = chains_of(corpus, tmp_path)
    list(chains.run(Here(stop_at=7)))
    assert [chain.done for chain in chains.chains] == [7, 0, 0]
    assert not chains.finished
    assert Model.load(chain_path(tmp_path / "m", 1)).info["iterations"] == 7
    again = chains_of(corpus, tmp_path, resume=True)
    reports = []
    backend = Here()
    backend.hear = lambda index, message, on_message: reports.append((index, message["done"]))
    list(again.run(backend))
    assert [done for index, done in reports if index == 0] == list(range(8, 21))
    assert chain_path(tmp_path / "m", 1).read_bytes() == alone(corpus, tmp_path, 1)


def test_forced_chains_start_at_the_beginning(corpus, tmp_path):
    list(chains_of(corpus, tmp_path).run(Here()))
    with pytest.raises(OverwriteError, match=r"m.checkpoint.chain01: holds a run .* tsg after iteration 20"):
        list(chains_of(corpus, tmp_path).run(Here()))
    chains = chains_of(corpus, tmp_path, force=True)
    reports = []
    backend = Here()
    backend.hear = lambda index, message, on_message: reports.append(message["done"])
    list(chains.run(backend))
    assert reports == [*range(1, 21)] * 3


def test_a_chain_goes_on_alone(corpus, tmp_path):
    """The checkpoint of a chain is that of an ordinary run with its seed and its name."""
    list(chains_of(corpus, tmp_path).run(Here(stop_at=7)))
    path = chain_path(tmp_path / "m", 1)
    run = TSG.run(corpus, chain_seeds(5, 1)[0], path, resume=True, quiet=True)
    run.begin()
    assert run.done == 7


def test_files_of_other_runs_are_seen(corpus, tmp_path):
    for name in ("m.chain04", "m.chain10", "m.chains", "m.checkpoint.chain04", "n.chain04"):
        (tmp_path / name).write_text("")
    assert [path.name for path in chains_of(corpus, tmp_path).stale_files()] == ["m.chain04", "m.chain10"]


def test_names_beside_a_model():
    assert beside("a/m", "tsv") == Path("a/m.tsv")
    assert beside("a/m.chain12", "checkpoint") == Path("a/m.checkpoint.chain12")
    assert beside("m.chainsaw", "tsv") == Path("m.chainsaw.tsv")


# ---- as a user runs them ---------------------------------------------------------------------------------


def start(folder, *options):
    """In a process group of its own, so that Ctrl-C can be sent to all of it as a terminal does."""
    return subprocess.Popen(
        [*COMMAND, *options, "--output=m", "village:dev"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hear_interrupts,  # noqa: PLW1509 - no threads
    )


def checkpoints(folder):
    return [checkpoint_path(chain_path(folder / "m", number)) for number in (1, 2)]


def all_at_work(folder):
    return all(path.exists() for path in checkpoints(folder))


@pytest.mark.slow
@needs_proc
def test_a_killed_chain_leaves_the_others_alone(tmp_path, tsgkit):
    options = ["--iterations=600", "--checkpoint-every=20", "--seed=3"]
    (tmp_path / "dev").write_text("(TOP (S (NP (PRP He)) (VP (VBD ran)) (. .)))\n")
    process = start(tmp_path, *options, "--dev=dev")
    wait_until(lambda: all_at_work(tmp_path))
    # The last one to begin: the other may be done soon.
    os.kill(descendants(process.pid, "spawn_main")[-1], signal.SIGKILL)
    table, talk = process.communicate(timeout=600)
    assert process.returncode == 1
    dead = re.search(r"chain (\d) failed: its process was killed by signal 9", talk)
    assert dead, talk
    assert f"not finished: chain {dead[1]}; --resume continues them" in talk
    assert re.search(rf"^ *{dead[1]} .* failed$", table, re.MULTILINE)
    assert (tmp_path / "m").exists()
    done = tsgkit(*COMMAND[3:], *options, "--resume", "-o", "m", "village:dev", "--dev=dev")
    best = re.search(r"chain (\d) has the highest aligned F1 on dev and is m\n", done.stdout)
    assert (tmp_path / "m").read_bytes() == chain_path(tmp_path / "m", int(best[1])).read_bytes()
    rows = (tmp_path / "m.convergence.tsv").read_text().splitlines()
    assert rows[0].split("\t") == ["quantity", "n_chains", "n_draws", "mean", "deviation", "r_hat", "ess"]
    assert [row.split("\t")[:3] for row in rows[1:3]] == [["log_joint", "2", "300"], ["fragments", "2", "300"]]
    seed = chain_seeds(3, int(dead[1]))[-1]
    tsgkit("train", "--model=tsg", "--average=2", options[0], f"--seed={seed}", "-q", "-o", "alone", "village:dev")
    assert (tmp_path / "alone").read_bytes() == chain_path(tmp_path / "m", int(dead[1])).read_bytes()
    models = sorted(path.name for path in tmp_path.glob("m.chain*"))
    assert models == ["m.chain01", "m.chain02"]
    assert tsgkit("parse", "-q", *models, text="He ran .\n").stdout.startswith("(TOP ")


@pytest.mark.slow
@needs_proc
def test_ctrl_c_stops_all_with_checkpoints(tmp_path):
    process = start(tmp_path, "--iterations=1000000")
    wait_until(lambda: all_at_work(tmp_path))
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to the chains as well
    table, talk = process.communicate(timeout=600)
    assert (process.returncode, table) == (130, "")
    assert "Traceback" not in talk
    assert "interrupted; --resume continues from there" in talk
    assert not (tmp_path / "m").exists()
    for number, path in enumerate(checkpoints(tmp_path), start=1):
        done = read_archive(path, "checkpoint", 1)[0]["iteration"]
        assert done > 0
        if chain_path(tmp_path / "m", number).exists():  # unless it takes too long to compute, on a busy machine
            assert Model.load(chain_path(tmp_path / "m", number)).info["iterations"] == done


@needs_proc
def test_chains_end_when_their_parent_is_killed(tmp_path):
    process = start(tmp_path, "--iterations=1000000")
    wait_until(lambda: all_at_work(tmp_path))
    own = descendants(process.pid, "spawn_main")
    assert len(own) == 2
    process.kill()
    process.communicate(timeout=600)
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in own))


@pytest.mark.slow
@needs_proc
def test_two_runs_of_chains_have_two_outputs(tmp_path):
    """The second is refused and changes nothing; after a kill of the first, the third continues at once."""
    options = ("--iterations=1000", "--checkpoint-every=1")
    first = start(tmp_path, *options)
    wait_until(lambda: all_at_work(tmp_path))
    for others in ((), ("--force",), ("--resume",), ("--seed=8", "--force")):
        second = start(tmp_path, *options, *others)
        _, talk = second.communicate(timeout=600)
        assert second.returncode == 1
        assert f"m: another process ({first.pid}) is writing it" in talk
    assert first.poll() is None
    assert len(descendants(first.pid, "spawn_main")) == 2
    first.kill()
    third = start(tmp_path, *options, "--resume")
    first.communicate(timeout=600)
    done = [read_archive(path, "checkpoint", 1)[0]["iteration"] for path in checkpoints(tmp_path)]
    wait_until(
        lambda: all(
            read_archive(path, "checkpoint", 1)[0]["iteration"] > before
            for path, before in zip(checkpoints(tmp_path), done, strict=True)
        ),
        third,
    )
    os.killpg(third.pid, signal.SIGINT)
    _, talk = third.communicate(timeout=600)
    assert third.returncode in (0, 130)  # 0 if it had come to its end
    assert "failed" not in talk


def test_a_single_training_and_chains_have_two_outputs(corpus, tmp_path):
    with sole_writer(tmp_path / "m"), pytest.raises(JobError, match="another process"):
        list(chains_of(corpus, tmp_path).run(Here()))
    chains = chains_of(corpus, tmp_path)
    with chains.sole_writer(), pytest.raises(JobError, match="another process"), sole_writer(tmp_path / "m"):
        pass
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--chains=0"], "--chains=0: must be at least 1"),
        (["--chains=2", "--model=cfg"], "a cfg is counted, not sampled: all chains would be equal"),
        (["--jobs=2"], "go with --chains=N"),
        (["--backend=joblib"], "go with --chains=N"),
        (["--chains=2", "--backend=dask"], "--backend=dask and --scheduler=ADDRESS go together"),
        (["--chains=2", "--scheduler=tcp://localhost:1"], "--backend=dask and --scheduler=ADDRESS go together"),
        (["--chains=2", "--backend=cloud"], "--backend=cloud: must be one of local, joblib, dask"),
        (["--chains=2", "--jobs=0"], "--jobs=0: must be at least 1"),
        (["--chains=2", "--output=no/such/m"], "no/such: No such folder"),
        (["--chains=2", "--dev=no-such-file"], "no-such-file"),
    ],
)
def test_wrong_options(tmp_path, monkeypatch, capsys, options, message):
    from tsgkit._tools import train  # noqa: PLC0415 - as the command finds it

    monkeypatch.chdir(tmp_path)
    defaults = {"--output": "--output=m", "--model": "--model=tsg"}
    defaults |= {option.partition("=")[0]: option for option in options}
    assert train.main(["-q", *defaults.values(), "village:dev"]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
