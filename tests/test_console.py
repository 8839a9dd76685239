"""The commands on the pages for new users do what the pages show: each is run, and its output compared.

Commands are in blocks of ``console`` after ``$``, with their output below them; ``...`` stands for output that differs
from run to run, or is left out. The commands of a page are run one after the other in a folder of that page.
"""

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import run_here

DOCS = Path(__file__).parent.parent / "docs"
PAGES = ["tutorial.rst", "howto-language.rst", "annotators.rst", "gallery.rst"]
# Two models are trained with their defaults.
SLOW_PAGES = [pytest.param("draw.rst", marks=pytest.mark.slow)]
# Its commands read excerpts of treebanks that are not part of the project, from a folder ``formats``.
PAGE_OF_EXCERPTS = "howto-treebanks.rst"
COMPARE = doctest.OutputChecker().check_output


BLOCK = re.compile(r"^\.\. code-block:: console\n\n((?:   .*\n|\n)+)", flags=re.MULTILINE)
STEP = re.compile(r"\$ ((?:.*\\\n)*.*)(?:\n|\Z)((?:(?!\$ ).*(?:\n|\Z))*)")
# What makes a command one for the shell: pipes, redirections, variables.
SHELL = re.compile(r"[|<>$&;*]")
# With this in the environment (`make pages`), a page that differs is given what the commands print now.
IS_UPDATE = bool(os.environ.get("TSGKIT_UPDATE_PAGES"))


def console_steps(block):
    """The commands of a block with the outputs that the page shows, in order."""
    lines = [line[3:] for line in block.rstrip().splitlines()]
    return [(command, output.strip("\n")) for command, output in STEP.findall("\n".join(lines))]


def console_block(steps):
    """The inverse."""
    lines = "\n".join(f"$ {command}" + (f"\n{output}" if output else "") for command, output in steps)
    return "".join(f"   {line}".rstrip() + "\n" for line in lines.splitlines()) + "\n"


def test_steps_are_found():
    page = "Text.\n\n.. code-block:: console\n\n   $ one \\\n       two\n   $ three\n   out\n\n   put\n\nText.\n"
    (block,) = BLOCK.findall(page)
    assert console_steps(block) == [("one \\\n    two", ""), ("three", "out\n\nput")]
    assert console_block(console_steps(block)) == block


@pytest.fixture
def console(tmp_path):
    """Runs a command in a folder that keeps what commands before it left; returns all it printed.

    A command of tsgkit that uses nothing of the shell is run in this process.
    """
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    programs, folder = tmp_path / "programs", tmp_path / "folder"
    programs.mkdir()
    tsgkit = programs / "tsgkit"
    tsgkit.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tsgkit "$@"\n', "utf-8")
    tsgkit.chmod(0o755)
    shutil.copytree(DOCS / "data", folder / "data")
    # Without a buffer, lines of stdout and stderr come in the order in which they are printed, as on a terminal.
    changes = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
    environment = os.environ | changes

    def run(command):
        words = shlex.split(command.replace("\\\n", " "))
        if words[0] == "tsgkit" and not SHELL.search(command):
            shown = run_here(words[1:], folder, is_one_stream=True).stdout
            return "\n".join(line.rstrip() for line in shown.strip("\n").splitlines())
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return "\n".join(line.rstrip() for line in done.stdout.decode("utf-8").strip("\n").splitlines())

    run.folder = folder
    return run


def compared(command, wanted, shown):
    """The output that the page should have."""
    if COMPARE(f"{wanted}\n", f"{shown}\n", doctest.ELLIPSIS):
        return wanted
    assert IS_UPDATE, f"$ {command}\n{shown}\ninstead of\n{wanted}"
    if wanted.startswith("..."):
        # The page leaves the first lines out, which are different every time.
        n_lines = len(wanted.splitlines())
        shown = "..." + "\n".join(shown.splitlines()[-n_lines:])
    return re.sub(r"\b\d+\.\d+ s\b( \([\d.]+)?", lambda found: "... s" + (" (..." if found[1] else ""), shown)


@pytest.mark.slow
def test_commands_on_excerpts(formats, console):
    (console.folder / "formats").symlink_to(formats)
    test_commands_on_page(PAGE_OF_EXCERPTS, console)


@pytest.mark.parametrize("name", [*PAGES, *SLOW_PAGES])
def test_commands_on_page(name, console):
    page = DOCS / name
    text = page.read_text("utf-8")
    blocks = BLOCK.findall(text)
    assert blocks
    for block in blocks:
        steps = [(command, compared(command, wanted, console(command))) for command, wanted in console_steps(block)]
        text = text.replace(block, console_block(steps), 1)
    if IS_UPDATE:
        page.write_text(text, "utf-8")
    if name == "tutorial.rst":
        assert (console.folder / "tree.svg").read_bytes() == (DOCS / "_static" / "derivation.svg").read_bytes()
