"""What every command promises."""

import importlib
import json
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from commands import run_forked, run_here

from tsgkit._cli import choice, command, integer, number
from tsgkit._exit_codes import EXIT_CODES
from tsgkit._guesses import COMMANDS_ELSEWHERE
from tsgkit._messages import exit_code_of
from tsgkit._usage import command_names
from tsgkit.errors import OverwriteError, TsgkitError, UsageError

# They have no progress bar and no messages.
SILENT = ("compare", "completion")


@pytest.mark.parametrize("name", command_names())
def test_help_version_and_wrong_options(tsgkit, name):
    assert "Usage:" in tsgkit(name, "--help").stdout
    assert tsgkit("help", name).stdout == tsgkit(name, "--help").stdout
    assert tsgkit(name, "--version").stdout.startswith("tsgkit ")
    for option in ("--help", "--version", *([] if name in SILENT else ["--quiet"])):
        assert option in tsgkit(name, "--help").stdout
    wrong = tsgkit(name, "--no-such-option", code=2)
    assert wrong.stdout == ""
    assert "Usage:" in wrong.stderr


def test_overview(tsgkit):
    listing = tsgkit("--help").stdout
    assert all(f"  {name} " in listing for name in command_names())
    assert tsgkit(code=2).stdout == ""
    assert "no command 'nonsense'; there are " in tsgkit("nonsense", code=2).stderr
    assert "no command 'trian'; did you mean train?" in tsgkit("trian", code=2).stderr
    assert "no command '-v'; did you mean --version?" in tsgkit("-v", code=2).stderr
    assert "no command 'evaluate'; did you mean eval?" in tsgkit("evaluate", code=2).stderr
    assert set(COMMANDS_ELSEWHERE.values()) <= set(command_names())
    assert not set(COMMANDS_ELSEWHERE) & set(command_names())
    message = "options stand after the command: tsgkit train --model=cfg ..."
    assert message in tsgkit("--model=cfg", "train", "x.mrg", code=2).stderr
    assert tsgkit("--version").stdout.startswith("tsgkit 0.")


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "--model=cfg", "-o", "b.model", "a.model"),
        ("parse", "a.model", "-i", "a.model"),
        ("draw", "a.model"),
        ("eval", "a.model", "a.model"),
        ("compare", "a.model", "a.model", "a.model"),
    ],
)
def test_a_model_is_not_taken_for_text(tsgkit, arguments):
    tsgkit("train", "--model=cfg", "-o", "a.model", "village:dev")
    error = tsgkit(*arguments, code=2).stderr
    assert "a.model: a zip archive: " in error
    assert "a model or corpus of tsgkit is one, too (`tsgkit info` says so), and has no trees to read" in error


def test_a_command_that_waits_for_the_keyboard_says_so(tsgkit, tmp_path):
    tsgkit("train", "--model=cfg", "-o", "a.model", "village:dev")
    for arguments, typed, message in (
        (["parse", "a.model"], b"I ran .", "reading sentences, one per line, from the terminal; Ctrl-D ends the input"),
        (["draw"], b"(S (PRP I) (VBD ran))", "reading trees, from the terminal"),
        (["parse", "-q", "a.model"], b"I ran .", ""),
    ):
        keyboard, terminal = pty.openpty()
        with subprocess.Popen(
            [sys.executable, "-m", "tsgkit", *arguments], cwd=tmp_path, stdin=terminal, stdout=-1, stderr=-1, text=True
        ) as process:
            os.close(terminal)
            os.write(keyboard, typed + b"\n\x04")
            _, error = process.communicate(timeout=60)
        os.close(keyboard)
        assert process.returncode == 0
        assert message in error if message else not error


@pytest.mark.parametrize(
    ("check", "value", "message"),
    [
        (lambda a: integer(a, "--n", 1), "x", "not a whole number"),
        (lambda a: integer(a, "--n", 1), "0", "must be at least 1"),
        (lambda a: number(a, "--n", 0, 1), "nan", "at least 0 and at most 1"),
        (lambda a: number(a, "--n", 0, 1), "2", "at least 0 and at most 1"),
        (lambda a: number(a, "--n"), "x", "not a number"),
        (lambda a: choice(a, "--n", ("a", "b")), "c", "must be one of a, b"),
    ],
)
def test_option_values(check, value, message):
    with pytest.raises(UsageError, match=f"--n={value}: .*{message}"):
        check({"--n": value})


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x"), 2),
        (FileNotFoundError(2, "none", "f"), 2),
        (PermissionError(13, "no", "f"), 1),
        (OverwriteError("x"), 3),
        (MemoryError(), 4),
        (KeyboardInterrupt(), 130),
    ],
)
def test_errors_become_exit_codes(error, code, capsys):
    @command
    def main(argv):
        raise error

    assert main([]) == code
    assert capsys.readouterr().err.startswith("tsgkit: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ("parse", "vilage.model"),
        ("train", "--model=cfg", "-o", "new.model", "vilage.model"),
        ("eval", "vilage.model", "other"),
        ("report", "-o", "r.html", "./Village.model"),
    ],
)
def test_a_file_with_a_similar_name_is_guessed(tsgkit, tmp_path, arguments):
    (tmp_path / "village.model").write_text("x")
    assert re.search(r"[Vv]ill?age.model: .*; did you mean (\./)?village.model\?$", tsgkit(*arguments, code=2).stderr)
    assert "did you mean" not in tsgkit("parse", "another", code=2).stderr
    assert "; there is no folder none\n" in tsgkit("parse", "none/village.model", code=2).stderr
    error = tsgkit("prepare", "village:dev", "-o", "none/dev.mrg", code=2).stderr
    assert "; there is no folder " in error


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("train", ["--modle=cfg", "-o", "m", "x"], "no option --modle; did you mean --model?"),
        ("train", ["x"], "--output=MODEL is missing"),
        ("train", ["-o", "m"], "TREEBANK is missing"),
        ("train", ["-o", "m", "--model=cfg", "--model=tsg", "x"], "--model is given twice"),
        ("train", ["--output"], "--output needs a value: --output=MODEL"),
        ("train", ["--quiet=yes", "-o", "m", "x"], "--quiet takes no value"),
        ("train", ["--s", "3", "-o", "m", "x"], "--s can be --"),
        ("train", ["--span-power=0", "-o", "m", "x"], "no option --span-power; it is one of `tsgkit parse`"),
        ("parse", ["--splits", "3", "m"], "no option --splits; it is one of `tsgkit train`"),
        ("report", ["--heads=penn", "m"], "no option --heads; it is one of "),
        ("eval", ["a"], "TEST is missing"),
        ("eval", ["a", "b", "c", "d"], "'d' is one argument too many"),
        ("eval", ["-x", "a", "b"], "no option -x"),
        ("completion", [], "bash is missing"),
        ("generate", [], "N is missing"),
    ],
)
def test_wrong_usage_is_explained(tsgkit, name, given, message):
    said = tsgkit(name, *given, code=2).stderr
    assert said.startswith(f"tsgkit: {message}")
    assert "Warning" not in said
    assert said.endswith(f"tsgkit {name} --help tells what the options mean\n")


LIGHT = [["--version"], ["--help"], ["completion", "bash"], ["completion", "zsh"], ["train", "--version"]]
LIGHT += [[name, "--help"] for name in command_names() if name != "train"]


def test_what_only_prints_text_imports_nothing_heavy():
    code = (
        "import contextlib, io, json, sys\n"
        "from tsgkit._cli import main\n"
        "HEAVY = {'numpy', 'nltk', 'tqdm', 'flask', 'matplotlib'}\n"
        "for given in json.loads(sys.argv[1]):\n"
        "    with contextlib.redirect_stdout(io.StringIO()) as printed:\n"
        "        assert main(given) == 0, given\n"
        "    assert printed.getvalue(), given\n"
        "    heavy = {name.partition('.')[0] for name in sys.modules} & HEAVY\n"
        "    assert not heavy, (given, heavy)\n"
    )
    command = [sys.executable, "-c", code, json.dumps(LIGHT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_exit_codes_are_those_of_the_manual():
    page = (Path(__file__).parent.parent / "docs" / "commands.rst").read_text(encoding="utf-8")
    table = page.partition(".. list-table:: Exit codes")[2].partition("\n\n.. ")[0]
    listed = re.findall(r"^   \* - (\d+)\n     - ((?:.+\n?)+?)(?=   \* -|\Z)", table, re.MULTILINE)
    assert {int(code): " ".join(text.split()) for code, text in listed} == EXIT_CODES


def test_every_error_has_a_listed_code():
    def subclasses(kind):
        return {kind}.union(*map(subclasses, kind.__subclasses__()))

    for name in command_names():
        importlib.import_module(f"tsgkit._tools.{name}")
    assert all(kind.exit_code in EXIT_CODES for kind in subclasses(TsgkitError))
    assert {exit_code_of(error) for error in (OSError(), FileNotFoundError(), MemoryError())} <= set(EXIT_CODES)


# ---- closed standard streams -----------------------------------------------------------------------------------

# A command for each name, with files that exist.
SIMPLE = {
    "compare": "compare a.mrg a.mrg a.mrg",
    "completion": "completion bash",
    "draw": "draw a.mrg",
    "eval": "eval a.mrg a.mrg",
    "generate": "generate 3",
    "info": "info m.model",
    "inspect": "inspect m.model",
    "parse": "parse m.model -i text",
    "prepare": "prepare a.mrg",
    "report": "report m.model -o report.html",
    "serve": "serve --help",
    "train": "train --model=cfg a.mrg -o new.model",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("streams")
    (made / "a.mrg").write_text("(TOP (S (NP (PRP He)) (VP (VBD ran)) (. .)))\n" * 3)
    (made / "text").write_text("He ran .\n")
    assert run_here(["train", "-q", "--model=cfg", "a.mrg", "-o", "m.model"], made).returncode == 0
    return made


def test_every_command_is_run_with_closed_streams():
    assert set(SIMPLE) == set(command_names())


@pytest.mark.parametrize("streams", ["<&- >&-", ">/dev/full"])
def test_closed_standard_streams(folder, streams):
    """Closed output is an error for what prints there, and for nothing else; a full disk is one, too."""
    lines = [line.replace("new.model", f"{len(streams)}.model") for line in SIMPLE.values()]
    for line, done in zip(lines, run_forked(list(map(str.split, lines)), folder, redirection=streams), strict=True):
        require_clean(done)
        writes_a_file = " -o " in line
        assert done.returncode == (0 if writes_a_file else 1), line
        if not writes_a_file:
            wanted = "No space left on device" if "full" in streams else "the standard output: is closed"
            assert f"tsgkit: {wanted}" in done.stderr


def require_clean(done):
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_closed_standard_input(folder):
    lines = ["prepare -", "parse m.model", "draw -", "eval - a.mrg"]
    for done in run_forked(list(map(str.split, lines)), folder, redirection="<&-"):
        require_clean(done)
        assert (done.returncode, done.stderr) == (1, "tsgkit: the standard input: is closed\n")


def test_a_process_whose_streams_are_closed(folder):
    """As above, with the start of the interpreter."""
    line = f"{shlex.quote(sys.executable)} -m tsgkit prepare - <&- >&-"
    done = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "tsgkit: the standard input: is closed\n")


def test_all_standard_streams_are_closed(folder):
    """What is opened next does not take the place of stdout or stderr."""
    line = f"{shlex.quote(sys.executable)} -m tsgkit prepare a.mrg --statistics -o b.mrg <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", line], cwd=folder, check=False).returncode == 1
    assert (folder / "b.mrg").read_bytes() == (folder / "a.mrg").read_bytes()
