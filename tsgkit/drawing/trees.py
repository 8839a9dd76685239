"""Trees and fragments made ready to be drawn: what every node shows, and where it goes.

A `Drawing` is a flat list of nodes from the top down, left to right, and knows nothing of ink; `svg`, `terminal` and
`latex` draw it. Nothing here recurses, so that a tree may be as deep as memory allows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from nltk.tree import Tree

from tsgkit.models.fragments import FOOT_MARK
from tsgkit.treebank.binarize import coarse_label, undo_label
from tsgkit.treebank.trees import brackets_of, is_preterminal, preorder

# What a node is in a derivation, beside a node: where a fragment begins, where one was inserted, what is still open.
PLAIN, BEGINS, INSERTED, OPEN, FOOT = "", "site", "inserted", "open", "foot"


@dataclass
class Node:
    """What is shown of a node.

    Attributes
    ----------
    text : str
        Its label, or the word.
    parent : int
        The number of the node above; -1 at the top.
    is_word : bool
    small : str
        What the label remembers of its surroundings, as in ``NP^S``, or its subcategory.
    is_subcategory : bool
        Whether `small` is that.
    value : str
        A small figure beside the label.
    step : int
        The fragment it belongs to; -1 if none.
    hue, edge_hue : int
        The colours of the node and of the line to its parent; -1 for that of text.
    role : {"", "site", "inserted", "open", "foot"}
    is_dashed : bool
        Whether the line to its parent goes to a foot.
    is_intermediate : bool
        Whether binarisation put it there.
    mark : {"", "right", "wrong", "missed"}
    note : str
        More about it, shown when pointed at.
    """

    text: str
    parent: int
    is_word: bool = False
    small: str = ""
    is_subcategory: bool = False
    value: str = ""
    step: int = -1
    hue: int = -1
    edge_hue: int = -1
    role: str = PLAIN
    is_dashed: bool = False
    is_intermediate: bool = False
    mark: str = ""
    note: str = ""


@dataclass
class Drawing:
    """A tree to be drawn.

    Attributes
    ----------
    nodes : list of Node
        From the top down, left to right: a word comes after its tag.
    title : str
        What the picture shows, for those who cannot see it.

    Examples
    --------
    >>> tree = Tree.fromstring("(S (NP (PRP I)) (VP (VBD ran)))")
    >>> print(Drawing.of_tree(tree).text(), end="")
        S
     ┌──┴─┐
    NP   VP
     │    │
    PRP  VBD
     I   ran
    """

    nodes: list[Node] = field(default_factory=list)
    title: str = ""

    # ---- what can be drawn -------------------------------------------------------------------------------

    @classmethod
    def of_tree(
        cls, tree: Tree, *, values: Sequence[str] | None = None, marks: Sequence[str] | None = None
    ) -> "Drawing":
        """A tree as it is.

        Parameters
        ----------
        tree : nltk.Tree
        values, marks : sequences of str, optional
            One per node from the top down, words not counted: see `Node`.
        """
        drawing = cls()
        stack: list[tuple[Tree | str, int]] = [(tree, -1)]
        number = 0
        while stack:
            item, parent = stack.pop()
            if not isinstance(item, Tree):
                drawing.nodes.append(Node(str(item), parent, is_word=True))
                continue
            value = values[number] if values is not None else ""
            mark = marks[number] if marks is not None else ""
            number += 1
            drawing.nodes.append(Node(item.label(), parent, value=value, mark=mark))
            place = len(drawing.nodes) - 1
            stack.extend((child, place) for child in reversed(item))
        drawing.title = f"tree of: {drawing.sentence}"
        return drawing

    @classmethod
    def of_fragment(cls, fragment: Tree, *, refined: Mapping[str, tuple[str, str]] | None = None) -> "Drawing":
        """A fragment: open nodes are marked, and the foot of an auxiliary tree has a dashed line.

        Parameters
        ----------
        fragment : nltk.Tree
        refined : mapping, optional
            Of the names of subcategories to their labels and digits.
        """
        drawing = cls()
        stack: list[tuple[Tree | str, int]] = [(fragment, -1)]
        while stack:
            item, parent = stack.pop()
            if not isinstance(item, Tree):
                drawing.nodes.append(Node(str(item), parent, is_word=True, hue=0, edge_hue=0, step=0))
                continue
            is_foot = not len(item) and item.label().endswith(FOOT_MARK)
            name = item.label().removesuffix(FOOT_MARK) if is_foot else item.label()
            label, digits = (refined or {}).get(name, (name, ""))
            node = labelled(label, parent)
            if digits:
                node.small, node.is_subcategory = digits, True
            node.role = PLAIN if len(item) else FOOT if is_foot else OPEN
            node.is_dashed = is_foot
            node.step = 0 if len(item) else -1
            node.hue, node.edge_hue = node.step, 0
            drawing.nodes.append(node)
            place = len(drawing.nodes) - 1
            stack.extend((child, place) for child in reversed(item))
        drawing.title = f"fragment rooted in {fragment.label()}"
        return drawing

    # ---- how -----------------------------------------------------------------------------------------------

    def svg(self, *, standalone: bool = True, clickable: bool = False) -> str:
        """The drawing as SVG; see `tsgkit.drawing.svg.draw_svg`."""
        from tsgkit.drawing.svg import draw_svg  # noqa: PLC0415 - ways to draw know drawings

        return draw_svg(self, standalone=standalone, clickable=clickable)

    def text(self, *, width: int | None = None, colour: bool = False) -> str:
        """The drawing in characters; see `tsgkit.drawing.terminal.draw_text`."""
        from tsgkit.drawing.terminal import draw_text  # noqa: PLC0415

        return draw_text(self, width=width, colour=colour)

    def latex(self) -> str:
        """The drawing for LaTeX; see `tsgkit.drawing.latex.draw_latex`."""
        from tsgkit.drawing.latex import draw_latex  # noqa: PLC0415

        return draw_latex(self)

    def _repr_svg_(self) -> str:
        return self.svg()

    @property
    def sentence(self) -> str:
        """Its words."""
        return " ".join(node.text for node in self.nodes if node.is_word)

    def children(self) -> list[list[int]]:
        """For every node the numbers of those below it."""
        children: list[list[int]] = [[] for _ in self.nodes]
        for number, node in enumerate(self.nodes):
            if node.parent >= 0:
                children[node.parent].append(number)
        return children


def labelled(label: str, parent: int) -> Node:
    """A node with a binarised label: what it remembers of its surroundings becomes small."""
    plain = undo_label(label)
    coarse = coarse_label(label)
    text = coarse if plain is None else plain
    return Node(text, parent, small=label[len(coarse) :], is_intermediate=plain is None)


@dataclass(frozen=True)
class Layout:
    """Where nodes go, in any unit.

    Attributes
    ----------
    x : list of float
        The middle of every node.
    width : float
    """

    x: list[float]
    width: float


def lay_out(drawing: Drawing, measure: Callable[[Node], float], gap: float) -> Layout:
    """Put parents above the middle of their children, such that nothing overlaps.

    Every subtree gets a strip of its own, as wide as its label or its children, whichever needs more.
    """
    nodes, children = drawing.nodes, drawing.children()
    own = [measure(node) for node in nodes]
    strip = own.copy()
    below = [0.0] * len(nodes)
    for number in reversed(range(len(nodes))):
        if children[number]:
            below[number] = sum(strip[child] for child in children[number]) + gap * (len(children[number]) - 1)
            strip[number] = max(own[number], below[number])
    left = [0.0] * len(nodes)
    for number in range(len(nodes)):
        start = left[number] + (strip[number] - below[number]) / 2
        for child in children[number]:
            left[child] = start
            start += strip[child] + gap
    x = [0.0] * len(nodes)
    for number in reversed(range(len(nodes))):
        middle = left[number] + strip[number] / 2
        if children[number]:
            middle = (x[children[number][0]] + x[children[number][-1]]) / 2
        half = own[number] / 2
        x[number] = min(max(middle, left[number] + half), left[number] + strip[number] - half)
    return Layout(x, strip[0] if nodes else 0.0)


def confidences(tree: Tree, confidence: Mapping[tuple[str, int, int], float]) -> list[str]:
    """For every node of a tree its posterior probability as a figure; none for tags and fallbacks."""
    pairs = zip(preorder(tree), brackets_of(tree), strict=True)
    return [
        "" if bracket not in confidence or is_preterminal(node) else shown_share(confidence[bracket])
        for node, bracket in pairs
    ]


def shown_share(share: float) -> str:
    """A probability with two digits; 1 only if it rounds to that.

    Examples
    --------
    >>> shown_share(0.934), shown_share(0.999), shown_share(0.001)
    ('.93', '1', '.00')
    """
    return "1" if share >= 0.995 else f"{share:.2f}".removeprefix("0")
