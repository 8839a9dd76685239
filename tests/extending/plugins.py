"""The examples of the page on extending tsgkit, as modules and as installed packages."""

import importlib.util
import os
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "extending"


def load_example(name):
    """The module of an example."""
    specification = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def install_example(folder, monkeypatch, name, group, entry):
    """Install an example below `folder` as a package that names it in an entry point, for child processes.

    `entry` is ``name=attribute``, with the name of the registry entry and that of its value in the module.
    """
    packages = folder / "packages"
    packages.mkdir()
    (packages / f"example_{name}.py").write_bytes((EXAMPLES / f"{name}.py").read_bytes())
    metadata = packages / f"example_{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: example-{name}\nVersion: 1.0\n")
    key, _, attribute = entry.partition("=")
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{key} = example_{name}:{attribute}\n")
    paths = [str(packages), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
