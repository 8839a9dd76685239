"""The most probable derivation of a given tree: the fragment of every node, and the counts of the fragments.

After training and parsing, for display. It works for models of all kinds: the fragments of a CFG are its rules, those
of a symbol-refined grammar have subcategories at their roots and frontier nodes.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from nltk.tree import Tree

from tsgkit._codes import LEFT_FOOT, SITE
from tsgkit.drawing._colours import assign_colours
from tsgkit.drawing._trees import BEGINS, INSERTED, PLAIN, Drawing, Node, labelled
from tsgkit.inference._entry import entry_of
from tsgkit.models._derivations import Step
from tsgkit.models._fragments import Example
from tsgkit.models._model import AnyModel, model_of
from tsgkit.parsing._known_tree import KnownTreeParser, NoDerivationError
from tsgkit.treebank._trees import words


@dataclass(frozen=True, repr=False)
class Derivation:
    """The most probable derivation of a tree.

    Attributes
    ----------
    words : list of str
        As in the text.
    vocabulary_words : list of str
        As in the vocabulary of the model.
    log_weight : float
        The log probability of this derivation with its words.
    nodes : ndarray of int with four columns
        The nodes of the binarised tree, ``(label, start, end, number of children)``, from the root down, left to right;
        a tag has no children.
    states : ndarray of int, one per node
        0 for an internal node of a fragment (or a foot), 1 for the root of a fragment, 2 or 3 for the root of an
        auxiliary tree whose foot is the left (or only) or the right child.
    labels : list of str, one per node
        Without subcategories.
    subcategories : list of str, one per node
        Digits, as of ``NP-01``, at the root of a fragment of a symbol-refined model, and at its internal nodes if the
        model has insertion; otherwise empty.
    steps : list of Step
        The fragments, each with its nodes.
    counts : list of int or float, one per fragment
        Its number of occurrences in the training trees in the last sample; for the rules of a CFG, their weights. 0 for
        a fragment from the base distribution or from an earlier sample.
    measure : str
        What the counts are: ``count`` or ``weight``.
    """

    words: list[str]
    vocabulary_words: list[str]
    log_weight: float
    nodes: np.ndarray
    states: np.ndarray
    labels: list[str]
    subcategories: list[str]
    steps: list[Step]
    counts: list[float]
    measure: str

    def __repr__(self) -> str:
        return f"<Derivation of {len(self.words)} words, {len(self.steps)} fragments>"

    @cached_property
    def step_of_node(self) -> list[int]:
        """The number of the fragment of every node."""
        owner = [-1] * len(self.nodes)
        for number, step in enumerate(self.steps):
            for node in step.nodes:
                owner[node] = number
        return owner

    def drawing(self) -> Drawing:
        """The binarised tree, each fragment in a different colour."""
        return draw_derivation(self)

    def _repr_svg_(self) -> str:
        return self.drawing().svg()


class Deriver:
    """Finds derivations under one model. It is read-only, so threads may share it.

    Parameters
    ----------
    model : Model, estimator or path

    Examples
    --------
    >>> import tsgkit
    >>> trees = tsgkit.read_trees("village:dev")
    >>> derivation = Deriver(tsgkit.train(trees, model="cfg")).derive(trees[0])
    >>> derivation.steps[0].brackets, derivation.counts[0] > 0, len(derivation.steps) == len(derivation.nodes)
    ('(TOP (FRAG^TOP ))', True, True)
    """

    def __init__(self, model: AnyModel) -> None:
        self.model = model_of(model)
        self.parser = KnownTreeParser(self.model.grammar)
        entry = entry_of(self.model)
        self.table, self.reader = entry.fragments(self.model), entry.derivations(self.model)
        self.table.number_of  # noqa: B018 - computed now, before threads share it

    def __repr__(self) -> str:
        return f"<Deriver of {self.model!r}>"

    def derive(self, tree: Tree) -> Derivation | None:
        """The best derivation of a tree as annotated (or as parsed); ``None`` if cleaning removes all its words.

        Parameters
        ----------
        tree : nltk.Tree

        Raises
        ------
        NoDerivationError
            If the tree has no derivation under the model; the message says what is missing.
        """
        preparation, labels = self.model.preparation, self.model.grammar.labels
        encoded = preparation.encode(tree)
        if encoded is None:
            return None
        sentence = words(encoded)
        vocabulary_words = preparation.vocabulary_words(sentence)
        rows, log_weight = self.parser.best(encoded, vocabulary_words)
        nodes, states, subcategories, steps = self.reader.read(rows, vocabulary_words)
        counts = [self.table.count_of.get(step.brackets, 0) for step in steps]
        names = [labels[label] for label in nodes[:, 0].tolist()]
        return Derivation(
            sentence,
            vocabulary_words,
            log_weight,
            nodes,
            states,
            names,
            subcategories,
            steps,
            counts,
            self.table.measure,
        )

    def examples(self, step: Step, limit: int = 3) -> list[Example]:
        """Training sentences with occurrences of a fragment in the last sample; none if the model stores no trees.

        Parameters
        ----------
        step : Step
            A fragment of a derivation.
        limit : int
            How many sentences at most.
        """
        number = self.table.number_of.get(step.brackets)
        if number is None or self.table.corpus is None:
            return []
        return self.table.examples(number, limit)


def derivation_of(model: AnyModel, tree: Tree) -> Derivation:
    """The most probable derivation of one tree; for many trees, `Deriver` is faster.

    Parameters
    ----------
    model : Model, estimator or path
    tree : nltk.Tree
        As annotated, or as parsed.

    Raises
    ------
    NoDerivationError
        If the tree has no derivation under the model.

    Examples
    --------
    >>> import tsgkit
    >>> from tsgkit.treebank import Binarization
    >>> model = tsgkit.train("village:dev", model="cfg", binarization=Binarization("right", 0))
    >>> tree = Tree.fromstring("(TOP (S (NP (PRP I)) (VP (VBD slept)) (. .)))")
    >>> for step in derivation_of(model, tree).steps[:3]:
    ...     print(step.brackets)
    (TOP (S ))
    (S (NP ) (@S ))
    (NP (PRP ))
    """
    derivation = Deriver(model).derive(tree)
    if derivation is None:
        raise NoDerivationError("the tree has no words")
    return derivation


# ---- drawings -------------------------------------------------------------------------------------------------


def draw_derivation(derivation: Derivation) -> Drawing:
    """A binarised tree with each fragment of its derivation in a different colour."""
    drawing = Drawing()
    owner, states = derivation.step_of_node, derivation.states.tolist()
    hues = assign_colours(parents_of_steps(derivation))
    # (number of the drawn parent, node of the derivation above, whether it is that one's foot)
    places: list[tuple[int, int, bool]] = [(-1, -1, False)]
    for number, (_, start, _, n_children) in enumerate(derivation.nodes.tolist()):
        parent, above, is_foot = places.pop()
        state = states[number]
        node = labelled(derivation.labels[number], parent)
        if derivation.subcategories[number]:
            node.small, node.is_subcategory = derivation.subcategories[number], True
        node.step, node.hue = owner[number], hues[owner[number]]
        node.edge_hue = hues[owner[above]] if above >= 0 else -1
        node.role = INSERTED if state >= LEFT_FOOT else BEGINS if state == SITE and above >= 0 else PLAIN
        node.is_dashed = is_foot
        node.note = step_note(derivation, owner[number])
        drawing.nodes.append(node)
        place = len(drawing.nodes) - 1
        if n_children == 0:
            drawing.nodes.append(word_node(derivation, start, place, node))
        feet = [state >= LEFT_FOOT and child == state - LEFT_FOOT for child in range(n_children)]
        places.extend((place, number, foot) for foot in reversed(feet))
    drawing.title = f"derivation of: {' '.join(derivation.words)}"
    return drawing


def word_node(derivation: Derivation, position: int, parent: int, tag: Node) -> Node:
    """The word below a tag; if its class replaces it in the vocabulary, a note says so."""
    word, known_as = derivation.words[position], derivation.vocabulary_words[position]
    note = tag.note if known_as == word else f"{tag.note}; the model knows {word} as {known_as}"
    return Node(word, parent, is_word=True, step=tag.step, hue=tag.hue, edge_hue=tag.hue, note=note)


def step_note(derivation: Derivation, step: int) -> str:
    """The note about the fragment of a node."""
    count = derivation.counts[step]
    if derivation.measure != "count":
        return f"{derivation.steps[step].brackets}: {derivation.measure} {count:.4g}"
    used = f"{count} time{'s'[: count != 1]} in the training trees" if count else "not in the last sample"
    return f"{derivation.steps[step].brackets}: {used}"


def parents_of_steps(derivation: Derivation) -> list[int]:
    """For every fragment of a derivation, the fragment of its parent node."""
    owner = derivation.step_of_node
    parents = [-1] * len(derivation.steps)
    waiting = [-1]
    for number, n_children in enumerate(derivation.nodes[:, 3].tolist()):
        above = waiting.pop()
        step = owner[number]
        if above >= 0 and owner[above] < step and derivation.steps[step].nodes[0] == number:
            parents[step] = owner[above]
        waiting.extend([number] * n_children)
    return parents
