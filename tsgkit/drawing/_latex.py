"""Drawings for LaTeX, as ``forest`` environments: fragments in colours, insertions dashed, all text escaped."""

from tsgkit.drawing._colours import HUES
from tsgkit.drawing._trees import BEGINS, FOOT, INSERTED, OPEN, Drawing, Node

SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    **{char: f"\\{char}" for char in "{}$&#%_"},
}
PREAMBLE = r"""% In the preamble: \usepackage{forest,xcolor,textcomp} \usepackage[T1]{fontenc}
"""
INDENT = "  "


def escape_latex(text: str) -> str:
    r"""A text escaped for LaTeX.

    Examples
    --------
    >>> print(escape_latex("50% of {A_1}"))
    50\% of \{A\_1\}
    """
    return "".join(SPECIAL.get(char, char if char.isprintable() else "\ufffd") for char in text)


def draw_latex(drawing: Drawing) -> str:
    r"""A drawing as a ``forest`` environment, with the colours that it uses.

    Examples
    --------
    >>> from nltk.tree import Tree
    >>> print(draw_latex(Drawing.of_tree(Tree.fromstring("(NN mill)"))), end="")
    % In the preamble: ...
    \begin{forest}
      [{NN}
        [{mill}, no edge, l=0pt, font=\itshape]
      ]
    \end{forest}
    """
    children = drawing.children()
    hues = sorted({hue for node in drawing.nodes for hue in (node.hue, node.edge_hue) if hue >= 0})
    lines = [PREAMBLE]
    lines += [f"\\definecolor{{tsg{hue}}}{{HTML}}{{{HUES[hue][0].removeprefix('#').upper()}}}\n" for hue in hues]
    lines.append("\\begin{forest}\n")
    depth = [0] * len(drawing.nodes)
    # A complemented number stands for a node whose children have all been written.
    stack = [0] if drawing.nodes else []
    while stack:
        number = stack.pop()
        if number < 0:
            lines.append(f"{INDENT * depth[~number]}]\n")
            continue
        node = drawing.nodes[number]
        depth[number] = 1 if node.parent < 0 else depth[node.parent] + 1
        options = "".join(f", {option}" for option in node_options(node))
        closed = "" if children[number] else "]"
        lines.append(f"{INDENT * depth[number]}[{{{node_text(node)}}}{options}{closed}\n")
        if children[number]:
            stack.append(~number)
            stack.extend(reversed(children[number]))
    return "".join([*lines, "\\end{forest}\n"])


def node_text(node: Node) -> str:
    """A label with its subcategory and signs."""
    text = escape_latex(node.text)
    if node.small:
        small = escape_latex(node.small)
        text += f"\\textsubscript{{{small}}}" if node.is_subcategory else f"{{\\tiny {small}}}"
    if node.value:
        text += f"\\textsuperscript{{{escape_latex(node.value)}}}"
    if node.role == INSERTED:
        text = f"$\\oplus$\\,{text}"
    return text + {OPEN: "$\\downarrow$", FOOT: "$^{*}$"}.get(node.role, "")


def node_options(node: Node) -> list[str]:
    """Options of a node and of the line to its parent."""
    options = []
    if node.hue >= 0:
        options.append(f"text=tsg{node.hue}")
    if node.is_word:
        return [*options, "no edge", "l=0pt", "font=\\itshape"]
    styles = [f"tsg{node.edge_hue}"] * (node.edge_hue >= 0) + ["dashed"] * node.is_dashed
    if styles:
        options.append(f"edge={{{','.join(styles)}}}")
    if node.role == BEGINS:
        options.append(f"draw=tsg{node.hue}, rounded corners=2pt, inner sep=2pt")
    return options
