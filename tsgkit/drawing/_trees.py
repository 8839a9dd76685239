"""Trees and fragments prepared for drawing: the text and the position of every node.

A `Drawing` is a list of nodes in preorder, independent of the output format; `svg`, `terminal` and `latex` draw it.
Nothing here recurses, so that a tree may be as deep as memory allows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from nltk.tree import Tree

from tsgkit.models._derivations import FOOT_MARK
from tsgkit.treebank._binarize import coarse_label, undo_label
from tsgkit.treebank._trees import brackets_of, is_preterminal, preorder

# Roles of nodes in a derivation: root of a substituted fragment, root of an inserted one, frontier node, foot.
PLAIN, BEGINS, INSERTED, OPEN, FOOT = "", "site", "inserted", "open", "foot"


@dataclass
class Node:
    """The text and style of a node.

    Attributes
    ----------
    text : str
        Its label, or the word.
    parent : int
        The number of its parent; -1 for the root.
    is_word : bool
    small : str
        The context in the label from markovisation, as in ``NP^S``, or its subcategory.
    is_subcategory : bool
        Whether `small` is a subcategory.
    value : str
        A small number beside the label.
    step : int
        The number of its fragment; -1 if none.
    hue, edge_hue : int
        The colours of the node and of the line to its parent; -1 for the colour of text.
    role : {"", "site", "inserted", "open", "foot"}
    is_dashed : bool
        Whether the line to its parent is that of a foot.
    is_intermediate : bool
        Whether it is an intermediate node of binarisation.
    mark : {"", "right", "wrong", "missed"}
    note : str
        A tooltip.
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


@dataclass(repr=False)
class Drawing:
    """A tree prepared for drawing.

    Attributes
    ----------
    nodes : list of Node
        In preorder: a word comes after its tag.
    title : str
        A description for screen readers.

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

    # ---- constructors ------------------------------------------------------------------------------------

    @classmethod
    def of_tree(
        cls, tree: Tree, *, values: Sequence[str] | None = None, marks: Sequence[str] | None = None
    ) -> "Drawing":
        """A drawing of a tree.

        Parameters
        ----------
        tree : nltk.Tree
        values, marks : sequences of str, optional
            One per node in preorder, words excluded; see `Node`.
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
        """A drawing of a fragment: frontier nodes are marked, and the foot of an auxiliary tree has a dashed line.

        Parameters
        ----------
        fragment : nltk.Tree
        refined : mapping, optional
            From the names of subcategories to their labels and digits.
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

    # ---- output --------------------------------------------------------------------------------------------

    def svg(self, *, standalone: bool = True, clickable: bool = False) -> str:
        """The drawing as SVG; see `tsgkit.drawing._svg.draw_svg`.

        Parameters
        ----------
        standalone : bool
            Whether it contains its style and background.
        clickable : bool
            Whether nodes are buttons.
        """
        from tsgkit.drawing._svg import draw_svg  # noqa: PLC0415 - the output formats import this module

        return draw_svg(self, standalone=standalone, clickable=clickable)

    def text(self, *, width: int | None = None, colour: bool = False) -> str:
        """The drawing as text; see `tsgkit.drawing._terminal.draw_text`.

        Parameters
        ----------
        width : int, optional
            A wider tree is printed as an indented list.
        colour : bool
            Whether fragments have colours, by escape sequences of the terminal.
        """
        from tsgkit.drawing._terminal import draw_text  # noqa: PLC0415

        return draw_text(self, width=width, colour=colour)

    def latex(self) -> str:
        """The drawing for LaTeX; see `tsgkit.drawing._latex.draw_latex`."""
        from tsgkit.drawing._latex import draw_latex  # noqa: PLC0415

        return draw_latex(self)

    def _repr_svg_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"<Drawing of {len(self.nodes)} nodes: {self.title}>"

    def __str__(self) -> str:
        return self.text().removesuffix("\n")

    @property
    def sentence(self) -> str:
        """The words of the tree."""
        return " ".join(node.text for node in self.nodes if node.is_word)

    def children(self) -> list[list[int]]:
        """For every node the numbers of its children."""
        children: list[list[int]] = [[] for _ in self.nodes]
        for number, node in enumerate(self.nodes):
            if node.parent >= 0:
                children[node.parent].append(number)
        return children


def labelled(label: str, parent: int) -> Node:
    """A node with a binarised label: its context becomes the small text."""
    plain = undo_label(label)
    coarse = coarse_label(label)
    text = coarse if plain is None else plain
    return Node(text, parent, small=label[len(coarse) :], is_intermediate=plain is None)


@dataclass(frozen=True)
class Layout:
    """Horizontal positions of nodes, in any unit.

    Attributes
    ----------
    x : list of float
        The centre of every node.
    width : float
    """

    x: list[float]
    width: float


def lay_out(drawing: Drawing, measure: Callable[[Node], float], gap: float) -> Layout:
    """Centre parents above their children, such that nothing overlaps.

    Every subtree gets a separate strip, as wide as its label or its children, whichever is wider.
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
    """The posterior probability of every node of a tree as text; empty for tags and fallbacks."""
    pairs = zip(preorder(tree), brackets_of(tree), strict=True)
    return [
        "" if bracket not in confidence or is_preterminal(node) else shown_share(confidence[bracket])
        for node, bracket in pairs
    ]


def shown_share(share: float) -> str:
    """A probability with two digits; 1 only if it rounds to 1.

    Examples
    --------
    >>> shown_share(0.934), shown_share(0.999), shown_share(0.001)
    ('.93', '1', '.00')
    """
    return "1" if share >= 0.995 else f"{share:.2f}".removeprefix("0")
