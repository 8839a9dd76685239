"""The stubs of compiled modules say what is there: every name, every parameter and its default, nothing else."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

import tsgkit

FOLDER = Path(tsgkit.__file__).parent
SOURCES = Path(__file__).parent.parent / "ext" / "tsgkit"
MODULES = sorted(source.stem for source in SOURCES.glob("*.pyx"))
# In a stub this stands for a default that is not written out.
NOT_WRITTEN_OUT = "..."


def own_names(value):
    """What somebody wrote into a module or class, without what Python and Cython add."""
    return {name: each for name, each in vars(value).items() if not name.startswith("__")}


def stub_names(body):
    """The definitions in the body of a stub's module or class."""
    names = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            names[node.target.id] = node
    return names


def is_property(node):
    return any(isinstance(each, ast.Name) and each.id == "property" for each in node.decorator_list)


def stub_parameters(function):
    """Name, kind and default of every parameter; `self` counts."""
    arguments = function.args
    defaults = [None] * (len(arguments.args) - len(arguments.defaults)) + arguments.defaults
    parameters = [(each.arg, "any", default) for each, default in zip(arguments.args, defaults, strict=True)]
    parameters += [
        (each.arg, "keyword", default)
        for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    return [(name, kind, None if default is None else ast.unparse(default)) for name, kind, default in parameters]


def true_parameters(function):
    """The same of a compiled function."""
    kinds = {inspect.Parameter.POSITIONAL_OR_KEYWORD: "any", inspect.Parameter.KEYWORD_ONLY: "keyword"}
    return [
        (each.name, kinds[each.kind], None if each.default is each.empty else repr(each.default))
        for each in inspect.signature(function).parameters.values()
    ]


def constructor_parameters(compiled):
    """The same of a class, which Python cannot ask for: Cython writes it down in the first line of the docstring."""
    first_line = (compiled.__doc__ or "").partition("\n")[0]
    found = re.fullmatch(rf"{compiled.__name__}\((.*)\)", first_line)
    parameters = []
    # Commas between brackets are those of arrays: float[:, ::1] weights.
    for text in re.split(r", (?![^\[]*\])", found[1]) if found and found[1] else []:
        declaration, _, default = text.partition("=")
        parameters.append((declaration.split()[-1], "any", default or None))
    return [("self", "any", None), *parameters]


def same_parameters(stub, true):
    if [parameter[:2] for parameter in stub] != [parameter[:2] for parameter in true]:
        return False
    return all(
        (one is None) == (other is None) and one in (other, NOT_WRITTEN_OUT, None)
        for (*_, one), (*_, other) in zip(stub, true, strict=True)
    )


def differences_in(stub, true, where):
    """Sentences about what differs between the definitions of a stub and what is there."""
    for name in sorted(stub.keys() | true.keys()):
        node, value, place = stub.get(name), true.get(name), f"{where}.{name}"
        if node is None or value is None:
            yield f"{place} is only in the {'module' if node is None else 'stub'}"
        elif isinstance(node, ast.ClassDef):
            inside = stub_names(node.body)
            constructor = inside.pop("__init__", None)
            stub_init = [("self", "any", None)] if constructor is None else stub_parameters(constructor)
            if not same_parameters(stub_init, constructor_parameters(value)):
                yield f"{place}() is {constructor_parameters(value)}, in the stub {stub_init}"
            yield from differences_in(inside, own_names(value), place)
        elif isinstance(node, ast.AnnAssign) or is_property(node):
            written = getattr(node, "value", None)
            if callable(value):
                yield f"{place} is a function, in the stub it is none"
            elif written is not None and ast.literal_eval(written) != value:
                yield f"{place} is {value}, in the stub {ast.unparse(written)}"
        elif not callable(value):
            yield f"{place} is no function"
        elif not same_parameters(stub_parameters(node), true_parameters(value)):
            yield f"{place}() is {true_parameters(value)}, in the stub {stub_parameters(node)}"


def public_names(module):
    """What a compiled module defines itself."""
    return {
        name: value
        for name, value in own_names(module).items()
        if not inspect.ismodule(value) and getattr(value, "__module__", module.__name__) == module.__name__
    }


@pytest.mark.parametrize("name", MODULES)
def test_stub_says_what_is_there(name):
    stub = ast.parse((FOLDER / f"{name}.pyi").read_text("utf-8"))
    module = importlib.import_module(f"tsgkit.{name}")
    assert list(differences_in(stub_names(stub.body), public_names(module), f"tsgkit.{name}")) == []


def test_every_stub_has_a_module():
    assert {path.stem for path in FOLDER.glob("*.pyi")} == set(MODULES)


def test_values_are_compared():
    text = (FOLDER / "_codes.pyi").read_text("utf-8")
    stub = ast.parse(text.replace("FOOT: Final = -3", "FOOT: Final = -4"))
    names = public_names(importlib.import_module("tsgkit._codes"))
    assert list(differences_in(stub_names(stub.body), names, "codes")) == ["codes.FOOT is -3, in the stub -4"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("def fill(\n        self,", "def fill(\n        self,\n        more: int,"), "Chart.fill() is"),
        (("threshold: float", "limit: float"), "Chart.make_mask() is"),
        (("smallest_share: float = 0.0", "smallest_share: float = 1.0"), "Chart.fill_outside() is"),
        (("max_bytes: int = ...", "most: int = ..."), "Chart() is"),
        (
            ("    def make_mask(self, threshold: float, *, symbols: bool = True) -> Mask: ...\n", ""),
            "Chart.make_mask is only in the module",
        ),
        (("DEFAULT_MAX_BYTES: int", "DEFAULT_BYTES: int"), "DEFAULT_BYTES is only in the stub"),
        (("    @property\n    def n_bytes", "    def n_bytes"), "Chart.n_bytes is no function"),
    ],
)
def test_differences_are_seen(change, complaint):
    text = (FOLDER / "_chart.pyi").read_text("utf-8")
    assert text.count(change[0]) == 1
    stub = ast.parse(text.replace(*change))
    module = importlib.import_module("tsgkit._chart")
    assert complaint in " ".join(differences_in(stub_names(stub.body), public_names(module), "tsgkit._chart"))
