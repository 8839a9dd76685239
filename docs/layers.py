"""Who may import whom: the table of the parts, and what the design page shows of it.

`PARTS` is the only place where dependencies between parts are written down. ``tests/test_layers.py`` compares it with
the imports of all sources; run as a script, this module draws the diagram and writes the table of the design page.
"""

from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parent
SOURCES = DOCS.parent / "ext" / "tsgkit"
PAGE, DIAGRAM = DOCS / "design.rst", DOCS / "_static" / "layers.svg"
BEGIN, END = ".. The table is written by docs/layers.py.\n", ".. End of the table.\n"


@dataclass(frozen=True)
class Part:
    """Some modules that are one part of the design.

    `modules` are names below ``tsgkit`` (a package stands for all its modules), or ``ext`` for the compiled ones.
    `imports` are the parts that its modules import, no more and no fewer. `column` is where the diagram has it.
    """

    name: str
    modules: tuple[str, ...]
    holds: str
    imports: tuple[str, ...]
    column: float


# From the bottom to the top: a part imports only what stands above it in this list.
PARTS = (
    Part(
        "shared",
        (
            "__version__",
            "_archive",
            "_checks",
            "_exit_codes",
            "errors",
            "_files",
            "_guesses",
            "_interruption",
            "_locks",
            "_messages",
            "_overwriting",
            "_plain",
            "_plugins",
            "_progress",
            "_registry",
            "registry",
            "_resumable",
            "_settings",
            "_standard_streams",
            "_streams",
        ),
        "errors, files, archives, the tables of parts that plug in",
        (),
        2.6,
    ),
    Part("compiled", ("ext",), "chart, restaurants, samplers, bracket scorer", ("shared",), 0.65),
    Part("treebank", ("treebank",), "readers, cleaning, binarisation, the flat corpus", ("shared",), 1.5),
    Part("grammar", ("grammar",), "weighted rules as a value", ("shared", "compiled"), 2.35),
    Part("distributed", ("distributed",), "where jobs run", ("shared",), 3.6),
    Part("evaluation", ("evaluation",), "EVALB, significance", ("shared", "compiled", "treebank"), 0.9),
    Part("models", ("models",), "what a model is", ("shared", "compiled", "treebank", "grammar"), 2.1),
    Part("drawing", ("drawing",), "trees as text, SVG, LaTeX and pictures", ("shared", "treebank", "models"), 1.75),
    Part(
        "inference",
        ("inference",),
        "how a model is trained; the entries of models",
        ("shared", "compiled", "treebank", "grammar", "distributed", "models"),
        2.9,
    ),
    Part(
        "parsing",
        ("parsing",),
        "the parser and its objectives",
        (
            "shared",
            "compiled",
            "treebank",
            "grammar",
            "distributed",
            "evaluation",
            "models",
            "drawing",
            "inference",
        ),
        1.3,
    ),
    Part(
        "raw text",
        ("raw_text",),
        "learning from sentences without trees",
        ("shared", "treebank", "distributed", "models", "inference", "parsing"),
        3.2,
    ),
    Part(
        "report",
        ("report",),
        "drawings, reports, the web page",
        ("shared", "compiled", "treebank", "evaluation", "models", "drawing", "inference", "parsing", "raw text"),
        1.3,
    ),
    Part(
        "facade",
        ("__init__", "_api", "_estimator_parameters", "_estimators", "_spacy_component"),
        "the functions and estimators that the package itself exports",
        ("shared", "treebank", "evaluation", "models", "drawing", "inference", "parsing", "raw text", "report"),
        0.3,
    ),
    Part(
        "tools",
        (
            "__main__",
            "_cli",
            "_completion",
            "_misuse",
            "_model_options",
            "_options",
            "_parser_options",
            "_tools",
            "_usage",
        ),
        "the commands",
        (
            "shared",
            "treebank",
            "distributed",
            "evaluation",
            "models",
            "drawing",
            "inference",
            "parsing",
            "raw text",
            "report",
        ),
        2.1,
    ),
)
BY_NAME = {part.name: part for part in PARTS}


def part_of(module: str) -> Part:
    """The part of a module such as ``tsgkit.treebank._clean``; KeyError if the table does not have it."""
    name = module.removeprefix("tsgkit.").partition(".")[0]
    if module == "tsgkit":
        name = "__init__"
    elif list(SOURCES.glob(f"{name}.p*")):
        name = "ext"
    for part in PARTS:
        if name in part.modules:
            return part
    raise KeyError(module)


def reachable(part: Part) -> set[str]:
    """The parts that a part imports, directly or through others."""
    return set(part.imports).union(*(reachable(BY_NAME[name]) for name in part.imports))


def drawn(part: Part) -> list[str]:
    """The imports that the diagram has a line for: those that no other import implies."""
    return [name for name in part.imports if not any(name in reachable(BY_NAME[other]) for other in part.imports)]


def rows() -> dict[str, int]:
    """The row of each part, from the bottom: just below the lowest part that imports it, if one does."""
    depth: dict[str, int] = {}
    for part in reversed(PARTS):
        depth[part.name] = max((depth[other.name] + 1 for other in PARTS if part.name in other.imports), default=0)
    for part in PARTS:
        if not any(part.name in other.imports for other in PARTS):
            depth[part.name] = min(depth[name] for name in part.imports) - 1
    lowest = max(depth.values())
    return {name: lowest - below for name, below in depth.items()}


WIDTH, HEIGHT, ACROSS, DOWN, MARGIN = 150, 38, 190, 84, 12
STYLE = (
    "text{font:14px sans-serif;text-anchor:middle;fill:#222}rect{fill:#eef3fa;stroke:#456}"
    "line{stroke:#456;stroke-width:1.2}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}rect{fill:#223;stroke:#9ab}line{stroke:#9ab}}"
)


def svg() -> str:
    """The diagram: a part is above all that it imports, and a line goes to each of them that no other line implies."""
    row = rows()
    top = max(row.values())

    def middle(part: Part) -> tuple[float, float]:
        return MARGIN + WIDTH / 2 + part.column * ACROSS, MARGIN + HEIGHT / 2 + (top - row[part.name]) * DOWN

    lines, boxes = [], []
    for part in PARTS:
        x, y = middle(part)
        boxes.append(f'<rect x="{x - WIDTH / 2:g}" y="{y - HEIGHT / 2:g}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>')
        boxes.append(f'<text x="{x:g}" y="{y + 5:g}">{part.name}</text>')
        for name in drawn(part):
            x2, y2 = middle(BY_NAME[name])
            lines.append(f'<line x1="{x:g}" y1="{y + HEIGHT / 2:g}" x2="{x2:g}" y2="{y2 - HEIGHT / 2:g}"/>')
    width = 2 * MARGIN + WIDTH + max(part.column for part in PARTS) * ACROSS
    height = 2 * MARGIN + HEIGHT + top * DOWN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}">\n'
        f"<style>{STYLE}</style>\n" + "\n".join(lines + boxes) + "\n</svg>\n"
    )


def table() -> str:
    """The table of the design page, the highest part first."""
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 14 40 46", ""]
    cells = [("part", "holds", "imports")]
    cells += [(part.name, part.holds, ", ".join(part.imports) or "nothing") for part in reversed(PARTS)]
    for first, *rest in cells:
        lines += [f"   * - {first}", *(f"     - {cell}" for cell in rest)]
    return "\n".join(lines) + "\n"


def page_with_table(text: str) -> str:
    """The design page with the table as it is now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    DIAGRAM.write_text(svg(), encoding="utf-8")
    PAGE.write_text(page_with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
