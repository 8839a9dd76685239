"""Usage texts are read without importing the commands, and are those of the commands."""

import importlib

import pytest

from tsgkit import _plugins
from tsgkit._model_options import with_defaults
from tsgkit._usage import command_names, usage_text, with_choices
from tsgkit.registry import Registry


@pytest.mark.parametrize("name", command_names())
def test_the_text_is_the_docstring_of_the_command(name):
    assert with_defaults(usage_text(name)) == importlib.import_module(f"tsgkit._tools.{name}").__doc__.strip()


@pytest.mark.parametrize("name", command_names())
def test_every_option_is_described_once(name):
    """A line of a description that begins with an option would describe it again, and its value become a list."""
    lines = [line.split() for line in usage_text(name).splitlines()]
    described = [words[0].partition("=")[0] for words in lines if words and words[0].startswith("--")]
    assert len(described) == len(set(described))


def test_a_line_that_becomes_too_long_is_wrapped():
    text = with_choices("  --shape=NAME  of the {shapes} [default: a]", shapes=["a" * 60, "b" * 60])
    first, second = text.splitlines()
    assert first.startswith("  --shape=NAME  of the a")
    assert second.startswith(" " * 16 + "b")
    assert second.endswith("[default: a]")


def test_every_part_in_the_tables_can_be_loaded():
    tables = [value for value in vars(_plugins).values() if isinstance(value, Registry)]
    assert len(tables) >= 7
    for table in tables:
        assert all(table[name] is not None for name in table.built_in)
