"""The sources of tsgkit by the names of their modules, and what each of them imports.

An import counts wherever it stands: at the top of a module, inside a function, under ``TYPE_CHECKING``, as a
``cimport``, as a literal argument of ``import_module``, or as ``module:attribute`` in a registry. Stubs of compiled
modules do not count: they name types, and nothing is imported for them when code runs.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def sources():
    """All sources by the names of their modules; a ``.pxd`` counts for its module."""
    found = {}
    for path in sorted((ROOT / "tsgkit").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = [path]
    for path in sorted((ROOT / "tools").glob("*.py")):
        found[f"tsgkit._tools.{path.stem}".removesuffix(".__init__")] = [path]
    compiled = ROOT / "ext" / "tsgkit"
    for path in sorted([*compiled.glob("*.pyx"), *compiled.glob("_[a-z]*.pxd")]):
        found.setdefault(f"tsgkit.{path.stem}", []).append(path)
    return found


SOURCES = sources()


def absolute(module, level, package):
    """The absolute name of what ``from ..module import`` in `package` names."""
    if not level:
        return module or ""
    base = package.split(".")[: len(package.split(".")) - level + 1]
    return ".".join([*base, *([module] if module else [])])


def python_imports(text, package):
    """The modules that a Python source imports, and names of `tsgkit` itself such as ``tsgkit.__version__``."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = absolute(node.module, node.level, package)
            for alias in node.names:
                name = f"{module}.{alias.name}"
                yield name if name in SOURCES or module == "tsgkit" else module
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (each.value for each in node.args if isinstance(each, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            entry = re.fullmatch(r"(tsgkit[\w.]*):\w+", node.value)
            if entry:
                yield entry[1]
        elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
            # Any module of a package, as f"tsgkit._tools.{name}".
            prefix = str(node.values[0].value)
            if re.fullmatch(r"tsgkit(\.\w+)+\.\w*", prefix):
                yield from (name for name in SOURCES if name.startswith(prefix))


STATEMENT = re.compile(r"^[ \t]*(?:from\s+(\.*)([\w.]*)\s+c?import\s+\(?([^#\n]*)|c?import\s+([^#\n]+))", re.MULTILINE)


def cython_imports(text, package):
    """The modules that a Cython source imports or cimports."""
    for dots, module, names, plain in STATEMENT.findall(text):
        if plain:
            yield from (name.split()[0] for name in plain.split(","))
            continue
        base = absolute(module, len(dots), package)
        for name in re.findall(r"(\w+)(?:\s+as\s+\w+)?", names) or [""]:
            yield f"{base}.{name}" if f"{base}.{name}" in SOURCES else base


def imports_of_file(path, module):
    """The modules of tsgkit that a source imports."""
    package = module if path.stem == "__init__" else module.rpartition(".")[0]
    read = python_imports if path.suffix == ".py" else cython_imports
    return {name for name in read(path.read_text("utf-8"), package) if re.match(r"tsgkit\b", name)}


def all_imports():
    """Every import of a module of tsgkit by another, as a pair."""
    return {
        (module, name) for module, paths in SOURCES.items() for path in paths for name in imports_of_file(path, module)
    }
