"""Sampling of trees that are not known, or known in part, with their derivations.

In every iteration of a tree-substitution grammar, after the derivations of all trees were resampled given the trees,
the trees of open sentences (`tsgkit.models._open_trees`) are resampled. A batch of them is unseated; the grammar
transform of the counts that are left fills a chart per sentence, under its brackets; a tree and derivation is drawn
from the chart; and then, one by one, accepted or rejected against the true counts (``_tsg_trees.pyx``).
"""

import numpy as np

from tsgkit._threads import thread_pool
from tsgkit._tsg_sampler import TsgSampler
from tsgkit.errors import UsageError
from tsgkit.inference._phases import Record, State, sampled_model
from tsgkit.inference._tsg import OpenMaterial, TsgMaterial, TsgSampling, TsgSettings
from tsgkit.models._closing import learn_closing
from tsgkit.models._derivations import node_states
from tsgkit.models._model import Model
from tsgkit.models._open_trees import (
    NodeArrays,
    TreeChart,
    corpus_of_trees,
    tree_of_nodes,
    with_trees,
    words_of,
)
from tsgkit.models._rules import TreeArrays, number_rules
from tsgkit.treebank import FlatCorpus
from tsgkit.treebank._prepare import preparation_of

TREE_PREFIX = "tree_"
NODE_ARRAYS = ("label", "rule", "left", "right", "parent")
OPEN_TREES = "open_trees"  # the key in `Model.info` of the number of sentences whose trees were sampled
# The streams of random numbers here: which sentences are a batch, and what is drawn for a sentence.
ORDER, PROPOSAL = 0, 1
BATCH = 100


class TreeProposals:
    """Trees and derivations for open sentences, drawn from the grammar of a sampler's counts.

    Parameters
    ----------
    material : TsgMaterial
    opened : OpenMaterial
    batch : int
        How many sentences are resampled together, from one grammar. The result depends on it: with more, fewer
        proposals are accepted, and less time is spent on making grammars.
    """

    def __init__(self, material: TsgMaterial, opened: OpenMaterial, batch: int = BATCH) -> None:
        self.material, self.part, self.table, self.batch = material, opened.part, opened.table, batch
        corpus = material.corpus
        self.joins_chains = preparation_of(corpus).cleaning.unaries
        self.sentences = [words_of(corpus, tree) for tree in range(self.part.first, corpus.n_trees)]

    def sweep(self, sampling: TsgSampling, step: int) -> np.ndarray:
        """Propose a tree for every open sentence: how many were proposed, accepted, and how many trees changed."""
        counts = np.zeros(3, dtype=np.int64)
        sampler, batch = sampling.sampler, self.batch
        order = np.random.Generator(self.stream(step, ORDER, 0)).permutation(len(self.sentences))
        for start in range(0, len(order), batch):
            numbers = order[start : start + batch]
            sampler.freeze(step, self.part.first + numbers)
            try:
                trees, states = self.drawn(sampling, numbers, step)
            except BaseException:
                sampler.unfreeze()
                raise
            counts += sampler.replace(step, trees, states, sampling.settings.temperature(step))
        return counts

    def stream(self, step: int, purpose: int, number: int) -> np.random.PCG64:
        return np.random.PCG64([self.material.seed, step, purpose, number])

    def drawn(self, sampling: TsgSampling, numbers: np.ndarray, step: int) -> tuple[TreeArrays, np.ndarray]:
        """A tree and a derivation for each of these sentences, which are frozen."""
        present = sampling.new_average()
        present.add(sampling.sample())
        grammar = present.grammar(self.table.labels, self.table.words, self.table.root)
        charts = TreeChart(grammar, joins_chains=self.joins_chains)

        def draw(number: int) -> tuple[NodeArrays, np.ndarray]:
            words = self.sentences[number]
            rows = charts.sample(words, self.part.brackets[number], self.stream(step, PROPOSAL, number))
            if rows is None:
                raise UsageError(f"sentence {number + 1} without a tree has too many words for a chart")
            nodes, states = node_states(grammar, rows)
            return tree_of_nodes(nodes, words.tolist(), self.table), states

        if self.material.threads == 1:
            found = [draw(number) for number in numbers.tolist()]
        else:
            with thread_pool(self.material.threads) as pool:
                found = list(pool.map(draw, numbers.tolist()))
        trees = with_trees(sampling.sampler.trees, [tree for tree, _ in found])
        return trees, np.concatenate([states for _, states in found])


class OpenTsgSampling(TsgSampling):
    """The sampling of derivations of all trees, and of the trees of open sentences.

    Parameters
    ----------
    material : TsgMaterial
        With `TsgMaterial.opened`.
    settings : TsgSettings
    """

    def __init__(self, material: TsgMaterial, settings: TsgSettings) -> None:
        super().__init__(material, settings)
        if material.opened is None:
            raise ValueError("all trees are known")
        self.proposals = TreeProposals(material, material.opened)

    def resample_trees(self, step: int) -> Record:
        """Resample the trees of open sentences with their derivations."""
        n_proposed, n_accepted, n_changed = self.proposals.sweep(self, step).tolist()
        return {"open_acceptance": n_accepted / max(n_proposed, 1), "open_changed": float(n_changed)}

    def present_corpus(self) -> FlatCorpus:
        return corpus_of_trees(self.corpus, self.sampler.trees)

    def last_sample(self) -> dict[str, np.ndarray]:
        """With the trees themselves."""
        trees = self.sampler.trees
        nodes = {f"{TREE_PREFIX}{name}": getattr(trees, name) for name in NODE_ARRAYS}
        return super().last_sample() | nodes | {f"{TREE_PREFIX}start": trees.tree_start}

    def restore(self, state: State) -> None:
        nodes = {name: np.array(state[f"{TREE_PREFIX}{name}"], dtype=np.int32) for name in NODE_ARRAYS}
        trees = self.trees.with_nodes(**nodes, tree_start=np.array(state[f"{TREE_PREFIX}start"], dtype=np.int64))
        trees.validate()
        if trees.n_trees != self.trees.n_trees or not np.array_equal(words_in(trees), words_in(self.trees)):
            raise ValueError("the trees are those of other sentences")
        self.sampler = TsgSampler(trees, self.material.seed)
        super().restore(state)

    def export(self) -> Model:
        """The model of the mean; its state and its corpus have the trees of the last sample."""
        average, corpus = self.mean(), self.present_corpus()
        model = sampled_model(
            self.settings,
            corpus,
            self.material.seed,
            stages=self.stages(average),
            n_samples=average.n_samples,
            state=self.exported_state(corpus),
        )
        model.closing = learn_closing(corpus, model.grammar.words)
        model.info[OPEN_TREES] = len(self.proposals.sentences)
        return model

    def exported_state(self, corpus: FlatCorpus) -> dict[str, np.ndarray]:
        """The last sample with the rules of the trees as they are, which are those that readers of models number."""
        own, numbered = self.sampler.trees, number_rules(corpus)
        number_of = np.full(own.n_rules, -1, dtype=np.int32)
        number_of[own.rule] = numbered.rule
        state = super().last_sample()
        fragments = state["fragments"].copy()
        fragments[:, 0] = number_of[fragments[:, 0]]
        return state | {"fragments": fragments}


def words_in(trees: TreeArrays) -> np.ndarray:
    """The words of all trees, one after the other."""
    word = trees.rule_word[trees.rule]
    return np.asarray(word[word >= 0])
