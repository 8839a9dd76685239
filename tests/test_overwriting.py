"""No command writes onto its inputs; trained models, checkpoints and partial results are replaced only on request."""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys

import pytest

from tsgkit import _cli
from tsgkit._cli import command
from tsgkit._files import new_file, open_binary, open_output
from tsgkit._overwriting import files_of_a_job, is_sealed, note_input, note_output
from tsgkit._tools import train as train_command
from tsgkit.errors import OverwriteError
from tsgkit.inference._checkpoint import checkpoint_path
from tsgkit.models._model import Model

TREE = "(TOP (S (NP (PRP He)) (VP (VBD ran)) (. .)))\n"
# Every command that writes a file: its arguments, in which OUT is replaced by each of the files in braces.
COMMANDS = {
    "prepare": "prepare {a.mrg} {b.mrg} -o OUT",
    "prepare npz": "prepare {a.npz} -o OUT",
    "prepare heads": "prepare b.mrg --binarize=centre-head --heads={penn.heads} -o OUT",
    "train": "train -q --model=cfg {a.mrg} {b.mrg} -o OUT",
    "train force": "train -q --model=cfg --force {a.mrg} --dev={b.mrg} -o OUT",
    "train npz": "train -q --model=cfg --force {corpus.npz} -o OUT",
    "train sampled": "train -q --force --model=tsg --iterations=2 {a.mrg} --dev={b.mrg} -o OUT",
    "train chains": "train -q --force --model=tsg --iterations=2 --chains=2 {a.mrg} --dev={b.mrg} -o OUT",
    "train start": "train -q --force --model=tsg --iterations=2 a.mrg --start={t.model} -o OUT",
    "train raw": "train -q --force --model=tsg --iterations=2 {a.mrg} --raw={text} --taught-by={t.model} -o OUT",
    "train partial": "train -q --force --model=tsg --iterations=2 {a.mrg} --partial={text} -o OUT",
    "train induce": "train -q --force --model=tsg --iterations=2 --induce=2 {text} -o OUT",
    "train labels": "train -q --force --model=cfg a.mrg --labels={rules} -o OUT",
    "train log": "train -q --force --model=tsg --iterations=2 {a.mrg} --dev={b.mrg} -o new --log=OUT",
    "prepare bad": "prepare -q {a.mrg} --skip-bad --list-bad=OUT",
    "parse": "parse -q {m.model} -i {text} -o OUT",
    "parse product": "parse -q {m.model} {m.model} --constraints -i {text} -o OUT",
    "parse trees": "parse -q m.model --from-trees -i {a.mrg} --params={my.prm} -o OUT",
    "parse scores": "parse -q {m.model} --score={a.mrg} -o OUT",
    "draw": "draw --format=svg {a.mrg} -o OUT",
    "draw model": "draw --format=svg --model={m.model} a.mrg -o OUT",
    "report": "report -q {m.model} --dev={b.mrg} -o OUT",
    "compare": "compare {a.mrg} {b.mrg} {c.mrg} --params={my.prm} --html=OUT",
}
SPELLINGS = ("the same", "dots", "symbolic link", "hard link")
CASES = [(name, source) for name, line in COMMANDS.items() for source in re.findall(r"\{(.*?)\}", line)]
# Each spelling with one command, and each input of all commands with one spelling.
SPELLED = [
    *((*CASES[0], spelling) for spelling in SPELLINGS),
    *((*case, SPELLINGS[number % len(SPELLINGS)]) for number, case in enumerate(CASES[1:])),
]


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    folder = tmp_path_factory.mktemp("given")
    for name in ("a.mrg", "b.mrg", "c.mrg", "a.npz"):  # whatever a file is called, brackets are brackets
        (folder / name).write_text(TREE * 3)
    (folder / "text").write_text("He ran .\n")
    (folder / "rules").write_text("phrase NP -> N\n")
    (folder / "my.prm").write_text("DEBUG 0\n")
    (folder / "penn.heads").write_text("* leftmost\n")
    run = [sys.executable, "-m", "tsgkit"]
    subprocess.run([*run, "train", "-q", "--model=cfg", "a.mrg", "-o", "m.model"], cwd=folder, check=True)
    options = ["--model=tsg", "--iterations=2"]
    subprocess.run([*run, "train", "-q", *options, "a.mrg", "-o", "t.model"], cwd=folder, check=True)
    options = ["--binarize=right", "--unknown=unicode"]
    subprocess.run([*run, "prepare", "-q", "a.mrg", *options, "-o", "corpus.npz"], cwd=folder, check=True)
    return folder


def spelled(folder, source, spelling):
    """Another name of a file."""
    if spelling == "the same":
        return source
    if spelling == "dots":
        (folder / "sub").mkdir()
        return f"sub/../{source}"
    other = folder / "other.npz"  # an ending that is allowed everywhere
    if spelling == "symbolic link":
        other.symlink_to(folder / source)
    else:
        os.link(folder / source, other)
    return other.name


@pytest.mark.parametrize("case", SPELLED, ids=": ".join)
def test_no_command_writes_onto_its_inputs(given, tmp_path, monkeypatch, case):
    name, source, spelling = case
    folder = tmp_path / "work"
    shutil.copytree(given, folder)
    monkeypatch.chdir(folder)
    output = spelled(folder, source, spelling)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    words = COMMANDS[name].replace("{", "").replace("}", "").replace("OUT", output).split()
    with contextlib.redirect_stderr(io.StringIO()) as said:
        assert _cli.main(words) == 3
    # A model is recognised before it is read.
    assert re.search(r"is an input of this command|holds a model", said.getvalue())
    after = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert after == before


def test_standard_streams_are_files_too(tmp_path):
    path = tmp_path / "a.mrg"
    path.write_text(TREE)
    run = [sys.executable, "-m", "tsgkit", "prepare"]
    with open(path, "rb") as source:
        done = subprocess.run([*run, "-", "-o", path], stdin=source, capture_output=True, text=True, check=False)
    assert (done.returncode, path.read_text()) == (3, TREE)
    assert "the same file as the input the standard input: is an input" in done.stderr
    with open(path, "ab") as target:
        done = subprocess.run([*run, path], stdout=target, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, path.read_text()) == (3, TREE)
    assert "the standard output, which is the same file as the input" in done.stderr


def test_parts_of_a_split_are_outputs(tmp_path, tsgkit):
    for name in ("t.train.mrg", "t.test.mrg"):
        (tmp_path / name).write_text(TREE * 4)
    assert "t.test.mrg: is an input" in tsgkit("prepare", "t.test.mrg", "--split=50,50", "-o", "t.mrg", code=3).stderr
    assert (tmp_path / "t.train.mrg").read_text() == TREE * 4


def test_files_beside_the_output_are_outputs(tmp_path, tsgkit):
    common = ("train", "-q", "--force", "--model=tsg", "--iterations=2")
    (tmp_path / "m.tsv").write_text(TREE * 3)
    assert "m.tsv: is an input" in tsgkit(*common, "m.tsv", "-o", "m", code=3).stderr
    (tmp_path / "out.partial").write_text("He ran .\n")
    tsgkit("train", "-q", "--model=cfg", "m.tsv", "-o", "cfg")
    for options in ((), ("--force",), ("--resume",)):
        said = tsgkit("parse", "cfg", "-i", "out.partial", "-o", "out", *options, code=3).stderr
        assert "out.partial: is an input" in said
    assert (tmp_path / "out.partial").read_text() == "He ran .\n"
    assert sorted(os.listdir(tmp_path)) == ["cfg", "m.tsv", "out.partial"]


def test_lines_of_a_log_are_appended_to_no_file_of_the_training(tmp_path, tsgkit):
    (tmp_path / "a.mrg").write_text(TREE * 3)
    common = ("train", "-q", "--model=tsg", "--iterations=2", "a.mrg", "-o", "m")
    for name in ("m", "./m.checkpoint", "m.tsv"):
        assert "the training writes this file itself" in tsgkit(*common, f"--log={name}", code=2).stderr
    tsgkit("train", "-q", "--model=cfg", "a.mrg", "-o", "kept")
    assert "holds a model" in tsgkit(*common, "--log=kept", code=3).stderr
    assert sorted(os.listdir(tmp_path)) == ["a.mrg", "kept"]
    for _ in range(2):
        tsgkit(*common, "--force", "--log=log")
    assert (tmp_path / "log").read_text().count("done: 2 iterations") == 2


def test_a_new_command_is_protected(tmp_path):
    """Whatever reads and writes through `tsgkit._files`."""
    path = tmp_path / "file"
    path.write_text("old")

    @command
    def main(argv):
        with open_output(path) as file, open_binary(path) as source:
            file.write(source.read().decode())

    assert main([]) == 3
    assert path.read_text() == "old"
    with open_binary(path) as source, new_file(path) as file:  # in Python, users know what they do
        file.write(source.read() + b" and new")
    assert path.read_text() == "old and new"


def test_what_is_not_a_regular_file_may_be_both():
    with files_of_a_job():
        note_input(os.devnull)
        note_output(os.devnull)
        note_input("/no/such/file")
        note_output("/no/such/file")


def test_links_stay_links(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with open_output(tmp_path / "link") as file:
        file.write("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


# ---- finished results and resumable work -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "prepare a.mrg -o kept",
        "prepare a.mrg --binarize=right --unknown=unicode -o kept.npz",
        "draw a.mrg -o kept",
        "report -q m.model -o kept",
        "parse -q m.model -i text -o kept",
        "compare a.mrg b.mrg c.mrg --html=kept",
        "generate -q 3 --truth=kept",
    ],
)
def test_no_other_command_replaces_a_model(given, tmp_path, tsgkit, words):
    for path in given.iterdir():
        shutil.copy(path, tmp_path)
    kept = tmp_path / ("kept.npz" if "npz" in words else "kept")
    shutil.copy(given / "m.model", kept)
    assert is_sealed(kept)
    said = tsgkit(*words.split(), code=3).stderr
    assert "holds a model" in said
    assert kept.read_bytes() == (given / "m.model").read_bytes()


def test_an_ordinary_result_is_replaced(tmp_path, tsgkit):
    (tmp_path / "a.mrg").write_text(TREE)
    for _ in range(2):
        tsgkit("prepare", "a.mrg", "-o", "b.mrg")
        tsgkit("prepare", "a.mrg", "--binarize=right", "--unknown=unicode", "-o", "b.npz")
        tsgkit("draw", "a.mrg", "-o", "drawing")


def train(folder, *options, output="m", code=0):
    model = [] if any(option.startswith("--model") for option in options) else ["--model=cfg"]
    given = ["-q", *model, "--output", str(folder / output), "village:dev", *options]
    assert train_command.main(given) == code


TSG = ("--model=tsg", "--iterations=4")


@pytest.mark.parametrize("options", [(), TSG, (*TSG, "--chains=2")], ids=["cfg", "tsg", "chains"])
def test_a_finished_model_is_replaced_only_on_request(tmp_path, capsys, options):
    train(tmp_path, *options)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if not path.name.startswith("m.tsv")}
    train(tmp_path, *options, "--keep-functions", code=3)
    assert "--force" in capsys.readouterr().err
    train(tmp_path, *options, "--resume")
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    train(tmp_path, *options, "--keep-functions", "--force")
    assert (tmp_path / "m").read_bytes() != before["m"]
    train(tmp_path, *options, "--resume", "--force", code=2)


def test_a_checkpoint_is_discarded_only_on_request(tmp_path, capsys):
    train(tmp_path, *TSG, "--seed=7")
    (tmp_path / "m").unlink()
    (tmp_path / "m.tsv").unlink()
    kept = checkpoint_path(tmp_path / "m").read_bytes()
    for seed in (7, 8):
        train(tmp_path, *TSG, f"--seed={seed}", code=3)
        said = capsys.readouterr().err
        assert "model tsg after iteration 4 (iterations=4, seed=7); --resume continues it, --force discards it" in said
    train(tmp_path, "--model=tsg", "--iterations=5", "--seed=8", "--resume", code=2)
    said = capsys.readouterr().err
    assert "seed is 7 there and 8 here, iterations is 4 there and 5 here" in said
    assert checkpoint_path(tmp_path / "m").read_bytes() == kept
    train(tmp_path, *TSG, "--seed=8", "--force")
    assert checkpoint_path(tmp_path / "m").read_bytes() != kept


def test_another_model_is_not_taken_for_that_of_a_chain(tmp_path, capsys):
    train(tmp_path)
    for options in ((), ("--resume",)):
        train(tmp_path, *TSG, "--chains=2", *options, code=3)
    assert "--force" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["m"]


def test_more_chains_can_be_added(tmp_path):
    train(tmp_path, *TSG, "--chains=2")
    train(tmp_path, *TSG, "--chains=3", "--resume")
    assert (tmp_path / "m.chain03").exists()


def test_partial_results_are_discarded_only_on_request(tmp_path, tsgkit):
    train(tmp_path)
    (tmp_path / "text").write_bytes(b"he ran .\n" * 3 + b"\xff\n")
    common = ("parse", "-q", "m", "-i", "text", "-o", "out")
    tsgkit(*common, code=2)
    kept = (tmp_path / "out.partial").read_bytes()
    assert kept.count(b"\n") == 3
    (tmp_path / "text").write_bytes(b"he ran .\n" * 4)
    said = tsgkit(*common, code=3).stderr
    assert "out.partial: holds 3 lines of a job that was not finished; --resume continues it" in said
    assert (tmp_path / "out.partial").read_bytes() == kept
    tsgkit(*common, "--resume", "--force", code=2)
    tsgkit(*common, "--resume")
    expected = (tmp_path / "out").read_bytes()
    (tmp_path / "text").write_bytes(b"he ran .\n" * 3 + b"\xff\n")
    tsgkit(*common, code=2)
    (tmp_path / "text").write_bytes(b"he ran .\n" * 4)
    tsgkit(*common, "--force")
    assert (tmp_path / "out").read_bytes() == expected


def test_an_unfinished_model_does_not_replace_another(tmp_path, monkeypatch):
    from tsgkit.inference._loop import Run  # noqa: PLC0415 - patched here

    train(tmp_path, output="m")
    finished = (tmp_path / "m").read_bytes()
    step = Run.step

    def interrupted_step(self, iteration):
        record = step(self, iteration)
        self.interrupted = iteration == 2
        return record

    with monkeypatch.context() as patch:
        patch.setattr(Run, "step", interrupted_step)
        train(tmp_path, *TSG, "--force", code=130)
        assert (tmp_path / "m").read_bytes() == finished
        train(tmp_path, *TSG, output="n", code=130)
        assert Model.load(tmp_path / "n").info["unfinished"]
    for name in ("m", "n"):
        train(tmp_path, *TSG, "--resume", output=name)
    assert (tmp_path / "m").read_bytes() == (tmp_path / "n").read_bytes()
    assert "unfinished" not in Model.load(tmp_path / "m").info


def test_outside_of_a_command_nothing_is_refused(tmp_path):
    (tmp_path / "a").write_text("x")
    note_input(tmp_path / "a")
    note_output(tmp_path / "a")
    with files_of_a_job():
        note_input(tmp_path / "a")
        with files_of_a_job(), pytest.raises(OverwriteError):  # within another one
            note_output(tmp_path / "a")


def test_an_inode_that_is_used_again_is_another_file(tmp_path):
    """A file that was read and then replaced leaves its inode, which the next new file may get."""
    source, target = tmp_path / "input", tmp_path / "output"
    with files_of_a_job():
        source.write_text("text")
        note_input(source)
        os.rename(source, target)  # the inode has another name now, as after its use for a new file
        source.write_text("new text")
        note_output(target)
        note_output(target)
