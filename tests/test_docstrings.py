"""What is public has docstrings in the style of numpydoc: a summary, and all parameters by name."""

import importlib
import inspect
import re
from enum import Enum
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "api" / "index.rst").read_text("utf-8")
MODULES = re.findall(r"^   \* - (?::doc:)?`+(tsgkit[\w.]*).*`\n     - (?!``tsgkit)", PAGE, re.MULTILINE)
EXPORTED = [
    (f"{package}.{name}", getattr(importlib.import_module(package), name))
    for package in MODULES
    for name in importlib.import_module(package).__all__
]
# What parsers of all kinds share, and how they work inside, is documented where it is defined.
METHODS = {
    "Parser": ("parse", "parse_one", "parse_sents", "parse_batch", "analyse", "with_settings", "tree_log_probability"),
    "Parse": ("tree", "alternatives"),
}


def named(text):
    """The parameters and attributes that a docstring describes."""
    found = set()
    for section in re.findall(
        r"^(?:Parameters|Attributes)\n-+\n((?:.*\n?)*?)(?=^\S.*\n-+$|\Z)", text, flags=re.MULTILINE
    ):
        for line in section.splitlines():
            if line and not line[0].isspace():
                found |= {name.strip().lstrip("*") for name in line.partition(" :")[0].split(",")}
    return found


def parameters(value):
    try:
        given = inspect.signature(value).parameters
    except (TypeError, ValueError):  # of compiled code, which has its .pyi file
        return set()
    return {name for name in given if name not in ("self", "cls", "y") and not name.startswith("_")}


def docs(classes, name=""):
    """The docstrings of a class or method and of those that it inherits from."""
    values = [vars(each).get(name) for each in classes] if name else classes
    return "\n".join(inspect.cleandoc(value.__doc__) + "\n" for value in values if getattr(value, "__doc__", None))


@pytest.mark.parametrize(("name", "value"), EXPORTED, ids=[name for name, _ in EXPORTED])
def test_parameters_are_described(name, value):
    if name.rpartition(".")[2].isupper():  # a table or another constant
        return
    summary = inspect.getdoc(value)
    if summary.startswith(f"{value.__name__}("):  # the signature of compiled code
        summary = summary.partition("\n\n")[2]
    assert summary.partition("\n")[0].endswith((".", ":")), name
    classes = value.__mro__[:-1] if inspect.isclass(value) else (value,)
    # Errors are made by us, protocols and enumerations by nobody.
    of_a_kind = inspect.isclass(value) and issubclass(value, Exception | Enum)
    is_made = not (of_a_kind or getattr(value, "_is_protocol", False))
    assert not is_made or parameters(value) <= named(docs(classes)), name
    if not inspect.isclass(value) or not name.startswith("tsgkit.") or name.count(".") > 1:
        return
    for attribute, found in vars(value).items():
        if attribute.startswith("_") or attribute not in METHODS.get(value.__name__, (attribute,)):
            continue
        method = getattr(found, "__func__", found)
        if inspect.isfunction(method):
            text = docs(classes, attribute)
            assert text, f"{name}.{attribute}"
            assert parameters(method) <= named(text), f"{name}.{attribute}"
        elif isinstance(found, property):
            assert found.__doc__, f"{name}.{attribute}"
