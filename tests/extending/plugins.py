"""The examples of the page on extending tsgkit, as modules and as installed packages."""

import importlib
import importlib.util
import os
import sys
from importlib.metadata import entry_points
from pathlib import Path

from tsgkit import _plugins
from tsgkit.inference.entry import MODELS
from tsgkit.registry import Registry
from tsgkit.report.panels import PANELS

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "extending"


def load_example(name):
    """The module of an example."""
    specification = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def install_example(folder, monkeypatch, name, group, entry):
    """Install an example below `folder` as a package that names it in an entry point.

    `entry` is ``name=attribute``, with the name of the registry entry and that of its value in the module.
    """
    key, _, attribute = entry.partition("=")
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    install(folder, monkeypatch, f"example_{name}", text, f"[{group}]\n{key} = example_{name}:{attribute}\n")


def install(folder, monkeypatch, module, text, points):
    """Install a package of one module with entry points below `folder`, for this process and for child processes."""
    packages = folder / "packages"
    metadata = packages / f"{module}-1.0.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    (packages / f"{module}.py").write_text(text, encoding="utf-8")
    name = module.replace("_", "-")
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(points)
    paths = [str(packages), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.syspath_prepend(packages)
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, module, importlib.import_module(module))
    find_entry_points(monkeypatch)


def find_entry_points(monkeypatch):
    """Let all registries look for entry points again, which they do once in a process otherwise."""
    registries = [MODELS, PANELS, *(each for each in vars(_plugins).values() if isinstance(each, Registry))]
    for registry in registries:
        found = {point.name: point for point in entry_points(group=registry.group)}
        monkeypatch.setitem(vars(registry), "_installed", found)
        monkeypatch.setattr(registry, "_loaded", dict(registry._loaded))
