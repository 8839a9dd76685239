"""Completion offers what the commands take: read off the usage texts, and tried in real shells."""

import ast
import importlib
import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

import docopt
import pytest

from tsgkit._completion import bash_script, zsh_script
from tsgkit._usage import command_names, command_text, command_texts

ROOT = Path(__file__).parent.parent
OPTIONS = {(text.name, option.long): option for text in command_texts() for option in text.options}


@pytest.mark.parametrize("name", command_names())
def test_options_are_those_of_docopt(name):
    sections = docopt.parse_docstring_sections(importlib.import_module(f"tsgkit._tools.{name}").__doc__)
    wanted = {(option.longer or option.short, option.argcount) for option in docopt.parse_options(sections.after_usage)}
    assert {(option.long, int(bool(option.value))) for option in command_text(name).options} == wanted


def choices_in(path, module):
    """Every ``choice(arguments, "--option", choices)`` of a module: the option, and what it may be."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "choice":
            _, option, choices = node.args
            yield option.value, set(eval(ast.unparse(choices), vars(importlib.import_module(module))))


def checked_choices():
    """Those of all commands; the choices of a command have priority over shared ones."""
    found = {}
    for path in sorted((ROOT / "tools").glob("*.py")):
        for option, values in choices_in(path, f"tsgkit._tools.{path.stem}"):
            found[path.stem, option] = values
    for option, values in choices_in(ROOT / "tsgkit" / "_options.py", "tsgkit._options"):
        for name in command_names():
            if (name, option) in OPTIONS:
                found.setdefault((name, option), values)
    return [(*key, values) for key, values in found.items()]


@pytest.mark.parametrize(("name", "option", "values"), checked_choices())
def test_choices_are_those_that_are_checked(name, option, values):
    offered = set(OPTIONS[name, option].choices)
    assert offered <= values
    # A model cannot do without a binarisation and classes of words.
    assert values - offered <= ({"none"} if name == "train" else set())


def test_some_choices():
    assert OPTIONS["train", "--model"].choices == ["cfg", "tsg", "insertion", "srtsg"]
    assert OPTIONS["train", "--base"].choices == ["frequency", "uniform"]
    assert OPTIONS["train", "--seed"].choices == []
    assert OPTIONS["train", "--output"].takes_file
    assert OPTIONS["train", "--heads"].takes_file
    assert not OPTIONS["train", "--unknown"].takes_file


@pytest.fixture
def folder(tmp_path):
    """A folder with files to complete, one with a space in its name."""
    for name in ("dev.mrg", "dev two.mrg", "test.mrg"):
        (tmp_path / name).touch()
    return tmp_path


# ---- bash --------------------------------------------------------------------------------------------------

# What bash does at the tab key: the line is split at spaces and at =, and the function is called.
ASK_BASH = r"""
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_tsgkit
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def in_bash(folder):
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    (folder / "script").write_text(bash_script(), "utf-8")

    def complete(*words):
        done = subprocess.run(
            ["bash", "--norc", "-c", ASK_BASH, "bash", "./script", "tsgkit", *words],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        return done.stdout.splitlines() if done.stdout.strip() else []

    return complete


def test_bash_commands(in_bash):
    assert set(in_bash("")) == {*command_names(), "help", "--help", "--version"}
    assert in_bash("pr") == ["prepare"]
    assert in_bash("help", "tr") == ["train"]
    assert in_bash("nonsense", "") == []


def test_bash_options(in_bash):
    assert in_bash("train", "--mod") == ["--model="]
    assert in_bash("parse", "model", "--qui") == ["--quiet"]
    assert set(in_bash("eval", "--")) == {
        option.long + ("=" if option.value else "") for option in command_text("eval").options
    }


def test_bash_values(in_bash):
    assert in_bash("train", "--model", "=") == ["cfg", "tsg", "insertion", "srtsg"]
    assert in_bash("train", "--model", "=", "ins") == ["insertion"]
    assert in_bash("train", "--seed", "=", "") == []
    assert in_bash("train", "--quiet", "=", "") == []
    assert set(in_bash("eval", "--params", "=", "")) >= {"collins", "new", "dev.mrg"}
    assert set(in_bash("train", "--output", "=", "de")) == {"dev.mrg", "dev two.mrg"}
    assert in_bash("train", "-o", "te") == ["test.mrg"]


def test_bash_arguments(in_bash):
    assert set(in_bash("train", "de")) == {"dev.mrg", "dev two.mrg"}
    assert in_bash("train", "-q", "te") == ["test.mrg"]
    assert in_bash("completion", "z") == ["zsh"]
    assert in_bash("generate", "de") == []


def test_bash_uses_it(folder):
    """`complete` knows the function, and the command prints the script."""
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    command = "source ./script && complete -p tsgkit"
    (folder / "script").write_text(bash_script(), "utf-8")
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "complete -F _tsgkit tsgkit"


# ---- zsh ---------------------------------------------------------------------------------------------------


class Zsh:
    """A real zsh at a pseudo-terminal."""

    def __init__(self, folder):
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.environ |= {"TERM": "dumb", "HOME": str(folder), "PS1": "READY%# "}
            os.execvp("zsh", ["zsh", "-f", "-i"])
        self.send("unsetopt zle_bracketed_paste; PS1='READY> '; autoload -U compinit && compinit -u -D\n")
        self.send("zstyle ':completion:*' verbose no; setopt no_auto_menu list_ambiguous; source ./script\n")
        self.send("echo loa''ded\n")
        self.read_until("loaded\r\n")

    def send(self, text):
        os.write(self.terminal, text.encode())

    def read_until(self, wanted, seconds=30):
        """What the terminal shows up to `wanted`."""
        shown, end = "", time.monotonic() + seconds
        while wanted not in shown:
            left = end - time.monotonic()
            assert left > 0, f"{wanted!r} did not come: {shown!r}"
            if select.select([self.terminal], [], [], left)[0]:
                shown += os.read(self.terminal, 4096).decode("utf-8", "replace")
        return shown

    def complete(self, line):
        """The line after the tab key, as zsh then would run it."""
        # A comment keeps the line from being run; the result comes back through the history.
        self.send(f"{line}\t")
        self.send("\x01: '\x05'\n")
        self.send("print -r -- got:${history[$((HISTCMD-1))]}:en''d\n")
        shown = self.read_until(":end\r\n")
        return shown.rpartition("got:: '")[2].partition("'")[0]

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.process, 0)


@pytest.fixture
def zsh(folder):
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    (folder / "script").write_text(zsh_script(), "utf-8")
    shell = Zsh(folder)
    yield shell
    shell.close()


def test_zsh(zsh):
    assert zsh.complete("tsgkit prep") == "tsgkit prepare"
    assert zsh.complete("tsgkit train --mod") == "tsgkit train --model"
    assert zsh.complete("tsgkit train --model=ins") == "tsgkit train --model=insertion"
    assert zsh.complete("tsgkit train tes") == "tsgkit train test.mrg"
    assert zsh.complete("tsgkit eval --params=coll") == "tsgkit eval --params=collins"
    assert zsh.complete("tsgkit completion z") == "tsgkit completion zsh"
    assert zsh.complete("tsgkit help ins") == "tsgkit help inspect"


@pytest.mark.parametrize(("shell", "script"), [("bash", bash_script), ("zsh", zsh_script)])
def test_command(tsgkit, shell, script):
    assert tsgkit("completion", shell).stdout == script()
    assert "Usage:" in tsgkit("completion", "fish", code=2).stderr
