"""Training of symbol-refined grammars: splits, what happens in an iteration, and what is kept."""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from tsgkit._sr import KINDS, SrSampler
from tsgkit._sr_sites import SrSiteSampler
from tsgkit.checks import require_amounts
from tsgkit.errors import UsageError
from tsgkit.inference.checkpoint import corpus_digest
from tsgkit.inference.loop import Record
from tsgkit.inference.tsg import TsgSettings, TsgTraining
from tsgkit.models.model import Model, Stage, parts_of
from tsgkit.models.rules import TreeArrays, number_rules
from tsgkit.models.srtsg import (
    BASES,
    RefinedGrammar,
    RuleMeans,
    Subcategories,
    Words,
    make_sampler,
    raw_probabilities,
    refined_probabilities,
)
from tsgkit.models.srtsg_insertion import InsertionGrammar, refined_corpus, refined_trees
from tsgkit.models.srtsg_sites import SiteGrammar, SiteMeans, make_site_sampler
from tsgkit.models.subcategories import INSERTION_PREFIX, SYMBOLS_WITH_INSERTION, read_splits, symbol_names
from tsgkit.treebank import FlatCorpus
from tsgkit.treebank.prepare import preparation_of

LOSSES = ("marginal", "joint")
MODES = ("exact", "map")
SITE_SAMPLERS = ("blocked", "local")
# The share of a split's iterations after which subcategories are merged; the rest goes on with what is left.
MERGE_AT = 0.6


@dataclass(frozen=True)
class SrSettings:
    """How a symbol-refined grammar is trained.

    Parameters
    ----------
    splits : int
        How often every subcategory is split in two.
    split_iterations : int
        Sweeps over the treebank after every split.
    levels : {1, 2, 3}
        3: refined rules back off to rules whose root has no subcategory, and these to the last base; 1 and 2: to the
        last base directly.
    base : {"uniform", "frequency"}
        The last base: every refinement of every rule of a label alike, or by the rule's frequency.
    merge : float
        The share of the splits that are undone, those with the smallest loss.
    merge_loss : {"marginal", "joint"}
        How the loss is measured: on the marginal likelihood of the trees, or on the joint probability.
    type_moves : int
        After every sweep, so many proposals to relabel all occurrences of a refined rule at once; 0 for none.
    type_mode : {"exact", "map"}
        Whether a rule in use may be the goal of such a move; ``map`` allows it, and no longer samples the posterior.
    average : int
        The grammar is the mean over so many samples, the last of those taken every `average_every` iterations.
    average_every : int
    anneal_from : float
        The temperature at the start of every split; it falls to 1 along a straight line.
    anneal_iterations : int
        Iterations of every split until the temperature is 1; 0 for no annealing.
    site_iterations : int
        After the splits, sweeps that sample substitution sites, so that fragments are more than single rules; 0 for
        none.
    sites : {"blocked", "local"}
        How: whole trees, or single sites.
    joint_iterations : int
        After these, sweeps that sample sites and subcategories together.
    stop_prob : float, optional
        The probability of a site at every child in the base of fragments; unless given, one per label is sampled.
    insertion_iterations : int
        At last, sweeps that leave subcategories as they are and sample sites and insertions; 0 for none.
    stacked, insertion_probability, insertion_cutoff
        Of these; see `tsgkit.inference.tsg.TsgSettings`.
    """

    splits: int = 4
    split_iterations: int = 200
    levels: int = 3
    base: str = "uniform"
    merge: float = 0.5
    merge_loss: str = "marginal"
    type_moves: int = 0
    type_mode: str = "exact"
    average: int = 30
    average_every: int = 4
    anneal_from: float = 1.0
    anneal_iterations: int = 0
    site_iterations: int = 0
    sites: str = "blocked"
    joint_iterations: int = 300
    stop_prob: float | None = None
    insertion_iterations: int = 0
    stacked: bool = False
    insertion_probability: float | None = None
    insertion_cutoff: float = 0.0

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("base", self.base, BASES),
            ("merge-loss", self.merge_loss, LOSSES),
            ("type-mode", self.type_mode, MODES),
            ("levels", self.levels, (1, 2, 3)),
            ("sites", self.sites, SITE_SAMPLERS),
        ):
            if value not in allowed:
                raise UsageError(f"{name} {value!r}: must be one of {', '.join(map(str, allowed))}")
        for name in ("splits", "split_iterations", "average", "average_every"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} {getattr(self, name)}: must be at least 1")
        if self.splits > 10:
            raise UsageError(f"splits {self.splits}: more than 10 would make over a thousand of every label")
        if not 0 <= self.merge < 1:
            raise UsageError(f"merge {self.merge}: must be at least 0 and below 1")
        if self.anneal_from < 1 or not 0 <= self.anneal_iterations <= self.split_iterations:
            raise UsageError("annealing starts from a temperature of at least 1 and ends within a split")
        if min(self.site_iterations, self.joint_iterations, self.insertion_iterations) < 0:
            raise UsageError("there is no negative number of iterations")
        if self.stop_prob is not None and not 0 < self.stop_prob < 1:
            raise UsageError(f"stop-prob {self.stop_prob}: must lie between 0 and 1")
        if self.stop_prob is not None and self.insertion_iterations:
            raise UsageError("stop-prob and insertion-iterations do not go together: with insertion it is sampled")
        self.insertion_settings()  # for its checks

    def insertion_settings(self) -> TsgSettings:
        """How sites and insertions are sampled over refined trees."""
        return TsgSettings(
            insertion=self.insertion_iterations > 0,
            stacked=self.stacked,
            insertion_probability=self.insertion_probability,
            insertion_cutoff=self.insertion_cutoff,
            average=self.average,
            average_every=self.average_every,
        )

    @property
    def iterations(self) -> int:
        """Sweeps in all."""
        return self.all_iterations_before_insertion + self.insertion_iterations

    @property
    def all_iterations_before_insertion(self) -> int:
        """Sweeps before there are insertions."""
        return self.all_split_iterations + self.site_iterations + self.joint_iterations

    @property
    def all_split_iterations(self) -> int:
        """Sweeps before sites are sampled."""
        return self.splits * self.split_iterations

    @property
    def last_phase(self) -> int:
        """Sweeps of the last phase without insertion: of sites and subcategories, of sites, or after the last split."""
        return self.joint_iterations or self.site_iterations or self.split_iterations

    @property
    def merge_step(self) -> int:
        """After which iteration of a split subcategories are merged."""
        return max(1, round(MERGE_AT * self.split_iterations))

    def settled_after(self, iterations: int) -> int:
        """The iteration after which all of `iterations` sample the same distribution."""
        if self.insertion_iterations:
            return iterations - self.insertion_iterations
        if self.joint_iterations or self.site_iterations:
            return iterations - self.last_phase
        changing = self.merge_step if self.merge else 0
        return iterations - self.last_phase + min(self.last_phase, max(changing, self.anneal_iterations))

    def is_averaged(self, iteration: int) -> bool:
        """Whether the mean takes the sample of an iteration: one of the last, of the last phase without insertion."""
        n_left = self.all_iterations_before_insertion - iteration
        return n_left < min(self.last_phase, self.average * self.average_every) and n_left % self.average_every == 0

    def temperature(self, step: int) -> float:
        """The temperature in an iteration of a split, counted from 1."""
        if step > self.anneal_iterations:
            return 1.0
        return self.anneal_from + (1.0 - self.anneal_from) * (step - 1) / self.anneal_iterations


class SrTraining:
    """A symbol-refined grammar in training; see `tsgkit.inference.loop.Training`.

    Parameters
    ----------
    corpus : FlatCorpus
        Binarised, with closed vocabulary. Where rare words were not replaced by their classes, classes are part of the
        lexical restaurants.
    settings : SrSettings
    seed : int

    Examples
    --------
    >>> from tsgkit.treebank import Binarization, UnknownWords, load, prepare
    >>> steps = {"binarization": Binarization("right", 0), "unknown": UnknownWords(threshold=0)}
    >>> corpus = prepare(load("village", "dev"), **steps)
    >>> settings = SrSettings(splits=1, split_iterations=2, joint_iterations=1, average=1)
    >>> training = SrTraining(corpus, settings, seed=1)
    >>> training.start()
    >>> for iteration in range(1, settings.iterations + 1):
    ...     record = training.iterate(iteration)
    >>> training.model().kind
    'srtsg'
    """

    def __init__(self, corpus: FlatCorpus, settings: SrSettings, *, seed: int = 0) -> None:
        self.corpus, self.settings, self.seed = corpus, settings, seed
        self.trees = number_rules(corpus)
        self.words = Words.of(corpus, self.trees, preparation_of(corpus).lexicon)
        self.digest = corpus_digest(corpus)
        self.root = int(corpus.label[0])
        # One entry per split begun; the nodes' symbols when the last of them began.
        self.splits: list[Subcategories] = []
        self.groups = corpus.label.astype(np.int32)
        self.sampler: SrSampler
        self.means = RuleMeans()
        # Once sites are sampled:
        self.site_sampler: SrSiteSampler | None = None
        self.site_means = SiteMeans()
        # And once there are insertions:
        self.insertions: TsgTraining | None = None

    def identity(self) -> dict[str, Any]:
        """Everything that the course of the training depends on."""
        return {"model": "srtsg", "settings": asdict(self.settings), "seed": self.seed, "corpus": self.digest}

    def start(self) -> None:
        """Split every label."""
        self.begin_split(Subcategories.whole(self.trees.n_labels), self.groups, None)

    def begin_split(self, before: Subcategories, groups: np.ndarray, parameters: np.ndarray | None) -> None:
        """Split the symbols that the nodes have now, and let every node choose at random."""
        self.splits.append(before.split(self.root))
        self.groups = groups
        random = np.random.Generator(np.random.PCG64([self.seed, len(self.splits)]))
        bits = (random.random(len(groups)) < 0.5) & (self.splits[-1].n_options[groups] > 1)
        self.sampler = self.new_sampler()
        if parameters is not None:
            self.sampler.set_parameters(parameters)
        self.sampler.start(bits.astype(np.uint8))

    def new_sampler(self) -> SrSampler:
        return make_sampler(
            self.trees,
            self.words,
            self.groups,
            self.splits[-1],
            base=self.settings.base,
            levels=self.settings.levels,
            seed=self.seed,
        )

    def symbols(self) -> np.ndarray:
        """The refined symbol of every node."""
        if self.site_sampler is not None:
            return self.site_sampler.symbols()
        number = self.splits[-1].number
        return number[2 * self.groups + self.sampler.bits()]

    def iterate(self, iteration: int) -> Record:
        """One sweep over all trees, then new parameters; splits and merges when their time has come."""
        settings = self.settings
        self.require_phase(iteration)
        if iteration > settings.all_iterations_before_insertion:
            return self.iterate_insertions(iteration)
        record = self.iterate_sites(iteration) if iteration > settings.all_split_iterations else self.refine(iteration)
        return record | {"auxiliary": 0.0, "insertions": 0.0} if settings.insertion_iterations else record

    def require_phase(self, iteration: int) -> None:
        """Refuse an iteration of another phase than the state's, which may come from a checkpoint."""
        settings = self.settings
        n_splits = min((iteration - 1) // settings.split_iterations + 1, settings.splits)
        may_have_sites = iteration > settings.all_split_iterations
        may_have_insertions = iteration > settings.all_iterations_before_insertion
        # What a phase begins with is made in its first iteration.
        is_first = iteration == 1 + settings.split_iterations * (n_splits - 1)
        fits = len(self.splits) == n_splits or (is_first and len(self.splits) == n_splits - 1)
        has_sites, has_insertions = self.site_sampler is not None, self.insertions is not None
        if not fits or has_sites > may_have_sites or has_insertions > may_have_insertions:
            raise UsageError(f"the checkpoint does not fit iteration {iteration}: its state is of another one")

    def refine(self, iteration: int) -> Record:
        """One sweep over the subcategories of all trees."""
        settings = self.settings
        split, step = divmod(iteration - 1, settings.split_iterations)
        step += 1
        if split == len(self.splits):
            self.begin_split(self.splits[-1], self.symbols(), self.sampler.parameters())
        temperature = settings.temperature(step)
        n_proposed, n_accepted, n_changed = self.sampler.tree_sweep(iteration, temperature)
        _, n_types_changed, _ = self.sampler.type_sweep(
            iteration, settings.type_moves, temperature, onto_used=settings.type_mode == "map"
        )
        log_joint = self.sampler.resample_parameters(iteration)
        if settings.merge and step == settings.merge_step:
            self.merge(iteration)
        if step >= settings.merge_step and settings.is_averaged(iteration):
            self.means.add(self.sampler, self.words)
        n_rules = float((self.sampler.cells("rule")[0] > 0).sum())
        return {
            "log_joint": log_joint,
            "acceptance": n_accepted / max(n_proposed, 1),
            "changed": float(n_changed),
            "types_changed": float(n_types_changed),
            "symbols": float(self.splits[-1].exists.sum()),
            "rules": n_rules,
            "sites": 1.0,
            "fragments": n_rules,
        }

    # ---- sites -------------------------------------------------------------------------------------------

    def begin_sites(self) -> SrSiteSampler:
        """Let every node be a site, with the symbol that the last split has given it."""
        sampler = self.new_site_sampler()
        sampler.take_parameters(self.sampler.parameters())
        sampler.start(self.symbols())
        self.site_sampler = sampler
        return sampler

    def new_site_sampler(self) -> SrSiteSampler:
        settings = self.settings
        sampler = make_site_sampler(
            self.trees,
            self.words,
            self.splits[-1],
            base=settings.base,
            levels=settings.levels,
            seed=self.seed,
        )
        if settings.stop_prob is not None:
            sampler.set_stops(settings.stop_prob)
        return sampler

    def iterate_sites(self, iteration: int) -> Record:
        """One sweep over the sites of all trees, or their subcategories, too, and new parameters."""
        settings, sampler = self.settings, self.site_sampler or self.begin_sites()
        joint = iteration > settings.all_split_iterations + settings.site_iterations
        if settings.sites == "local" and not joint:
            n_proposed, n_accepted, n_changed = sampler.local_sweep(iteration)
        else:
            n_proposed, n_accepted, n_changed = sampler.blocked_sweep(iteration, joint=joint)
        log_joint = sampler.resample_parameters(iteration, stops=settings.stop_prob is None)
        if settings.is_averaged(iteration):
            self.site_means.add(sampler, self.words, settings.levels)
        return {
            "log_joint": log_joint,
            "acceptance": n_accepted / max(n_proposed, 1),
            "changed": float(n_changed),
            "types_changed": 0.0,
            "symbols": float(self.splits[-1].exists.sum()),
            "rules": float(len(sampler.cells("rule"))),
            "sites": float(sampler.sites().mean()),
            "fragments": float(len(sampler.dishes())),
        }

    # ---- insertions --------------------------------------------------------------------------------------

    def begin_insertions(self) -> TsgTraining:
        """Go on with the sites that there are, and the symbols that nodes have."""
        sampler = self.site_sampler or self.begin_sites()
        insertions = self.new_insertions(sampler)
        insertions.start_with(sampler.sites())
        self.insertions = insertions
        return insertions

    def new_insertions(self, sampler: SrSiteSampler) -> TsgTraining:
        settings = self.settings
        refined = refined_corpus(self.corpus, symbol_names(self.corpus.labels, self.splits), sampler.symbols())
        trees = refined_trees(refined, SiteGrammar(*self.site_parts(sampler)))
        return TsgTraining(
            refined,
            settings.insertion_settings(),
            iterations=settings.insertion_iterations,
            seed=self.seed,
            trees=trees,
        )

    def iterate_insertions(self, iteration: int) -> Record:
        """One sweep over the sites and insertions of all trees, and new parameters."""
        insertions = self.insertions or self.begin_insertions()
        record = insertions.iterate(iteration - self.settings.all_iterations_before_insertion)
        kept = ("log_joint", "acceptance", "changed", "types_changed", "fragments", "auxiliary", "insertions")
        return {name: record[name] for name in kept} | {
            "symbols": float(self.splits[-1].exists.sum()),
            "rules": float(insertions.trees.n_rules),
            "sites": record["sites"] / self.corpus.n_nodes,
        }

    def merge(self, iteration: int) -> None:
        """Undo the splits with the smallest loss."""
        losses = self.sampler.merge_losses(iteration, marginal=self.settings.merge_loss == "marginal")
        candidates = np.flatnonzero(self.splits[-1].n_options > 1)
        order = candidates[np.argsort(losses[candidates], kind="stable")]
        is_merged = np.zeros(len(losses), dtype=np.uint8)
        is_merged[order[: int(len(order) * self.settings.merge)]] = 1
        self.sampler.merge(is_merged, iteration)
        last = self.splits[-1]
        self.splits[-1] = Subcategories(last.group_label, self.sampler.n_options(), last.n_labels)
        base = refined_probabilities(self.trees, self.words, self.settings.base, self.splits[-1])
        self.sampler.set_rule_base(base)

    def describe(self, record: Record) -> dict[str, str]:
        """The progress bar's figures."""
        sites = {"sites": f"{record['sites']:.1%}"} if self.site_sampler is not None else {}
        return {
            "split": str(len(self.splits)),
            **sites,
            "log joint": f"{record['log_joint']:.0f}",
            "accepted": f"{record['acceptance']:.1%}",
            "symbols": f"{record['symbols']:.0f}",
            "nodes/s": f"{self.corpus.n_nodes / max(record['seconds'], 1e-9):.2g}",
        }

    def state(self) -> dict[str, np.ndarray]:
        """Splits, choices, seating, parameters, and the mean so far."""
        state = {f"options_{number}": split.n_options for number, split in enumerate(self.splits)}
        if self.site_sampler is not None:
            return state | self.site_state(self.site_sampler)
        state |= {"groups": self.groups, "bits": self.sampler.bits(), "parameters": self.sampler.parameters()}
        state |= {f"seating_{kind}": rows for kind, rows in self.sampler.seating().items()}
        return state | {f"mean_{name}": value for name, value in self.means.state().items()}

    def site_state(self, sampler: SrSiteSampler) -> dict[str, np.ndarray]:
        """The same once sites are sampled; the nodes' symbols are there as groups and bits, too."""
        symbols = sampler.symbols()
        groups = self.splits[-1].parent[symbols]
        state = {"groups": groups, "bits": (self.splits[-1].number[2 * groups] != symbols).astype(np.uint8)}
        state |= {"sites": sampler.sites(), "stops": sampler.stops(), "parameters": sampler.parameters()}
        state |= {f"seating_{kind}": rows for kind, rows in sampler.seating().items()}
        if self.insertions is not None:
            state |= {f"{INSERTION_PREFIX}{name}": value for name, value in self.insertions.state().items()}
        return state | {f"mean_{name}": value for name, value in self.site_means.state().items()}

    def restore_sites(self, state: dict[str, np.ndarray]) -> None:
        groups, bits = (state[name] for name in ("groups", "bits"))
        number = self.splits[-1].number
        require_amounts(groups, "int32", (self.corpus.n_nodes,))
        require_amounts(bits, "uint8", (self.corpus.n_nodes,))
        if (groups >= len(self.splits[-1].n_options)).any() or (bits > 1).any():
            raise ValueError("a node's subcategory is not there")
        sampler = self.new_site_sampler()
        sampler.set_parameters(state["parameters"])
        sampler.set_stops(state["stops"])
        sampler.restore(number[2 * groups + bits], state["sites"], parts_of(state, "seating_"))
        means = parts_of(state, "mean_")
        self.site_means = SiteMeans.restored(means, sampler, self.words, self.settings.levels)
        self.site_sampler = sampler
        own = parts_of(state, INSERTION_PREFIX)
        if own:
            self.insertions = self.new_insertions(sampler)
            self.insertions.restore(own)

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Go back to a state."""
        try:
            self.splits = read_splits(state, self.corpus)
            if len(self.splits) > self.settings.splits:
                raise ValueError("the number of splits is another")
            if "sites" in state:
                self.restore_sites(state)
                return
            require_amounts(state["groups"], "int32", (self.corpus.n_nodes,))
            require_amounts(state["bits"], "uint8", (self.corpus.n_nodes,))
            self.groups = state["groups"]
            self.sampler = self.new_sampler()
            self.sampler.set_parameters(state["parameters"])
            self.sampler.restore(state["bits"], {kind: state[f"seating_{kind}"] for kind in KINDS})
            self.means = RuleMeans.restored(parts_of(state, "mean_"), self.sampler, self.words)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise UsageError(f"the checkpoint does not fit the treebank: {error}") from None

    def model(self) -> Model:
        """The mean of the averaged samples, or of the present one if the run is not so far."""
        if self.site_sampler is not None:
            return self.site_model(self.site_sampler)
        means = self.means
        if not means.n_samples:
            means = RuleMeans()
            means.add(self.sampler, self.words)
        subcategories = self.splits[-1]
        refined = RefinedGrammar(
            self.corpus,
            self.trees,
            self.words,
            subcategories,
            self.sampler.blocks(),
            means.mean(),
            self.sampler.houses("rule")[0],
            raw_probabilities(self.trees, self.settings.base, subcategories, bool(self.words.classes)),
            self.settings.levels,
        )
        return self.model_of(self.cascade(refined), means.n_samples)

    def site_model(self, sampler: SrSiteSampler) -> Model:
        """The same once sites are sampled."""
        parts = self.site_parts(sampler)
        if self.insertions is None:
            return self.model_of(self.site_cascade(SiteGrammar(*parts)), parts.means.n_samples)
        average = self.insertions.mean()
        grammar = InsertionGrammar(*parts, average=average)
        model = self.model_of(self.site_cascade(grammar), average.n_samples)
        model.state[SYMBOLS_WITH_INSERTION] = grammar.symbol_of()
        return model

    def site_parts(self, sampler: SrSiteSampler) -> "SiteParts":
        means, levels = self.site_means, self.settings.levels
        if not means.n_samples:
            means = SiteMeans()
            means.add(sampler, self.words, levels)
        return SiteParts(self.corpus, self.trees, self.words, self.splits[-1], means, self.settings.base, levels)

    def model_of(self, stages: list[Stage], n_samples: int) -> Model:
        info = {"settings": asdict(self.settings), "seed": self.seed, "samples": n_samples}
        info |= {"trees": self.corpus.n_trees, "tokens": self.corpus.n_tokens}
        means = ("mean_", f"{INSERTION_PREFIX}average_")
        state = {name: value for name, value in self.state().items() if not name.startswith(means)}
        return Model("srtsg", preparation_of(self.corpus), stages, info, state, self.corpus)

    def ancestors(self, split: int) -> np.ndarray:
        """For every refined symbol the one it was before the splits after number `split`."""
        ancestor = np.arange(len(self.splits[-1].label))
        for later in self.splits[: split - 1 : -1]:
            ancestor = later.parent[ancestor]
        return ancestor

    def site_cascade(self, sites: SiteGrammar) -> list[Stage]:
        """The treebank's own grammar, refined rules of the split in the middle and of the last, and the transform."""
        fine = sites.grammar()
        same = np.arange(len(self.corpus.labels), dtype=np.int32)
        middle = self.ancestors((len(self.splits) + 1) // 2)
        last = np.arange(len(middle))
        refined, coarse = sites.coarse_grammar(self.symbols(), middle)
        stages = [Stage(refined.raw_grammar(coarse)), Stage(coarse, same, coarse.label.astype(np.int32))]
        if middle.max() < last.max():
            _, flat = sites.coarse_grammar(self.symbols(), last)
            # Beside the refined symbols, both have the same for every label.
            others = np.arange(flat.n_symbols - len(last)) + middle.max() + 1
            stages.append(Stage(flat, same, np.concatenate([middle, others]).astype(np.int32)))
        return [*stages, Stage(fine, same, sites.symbol_map(fine, last if len(stages) > 2 else middle))]

    def cascade(self, refined: RefinedGrammar) -> list[Stage]:
        """The treebank's own grammar, the split in the middle, and all splits."""
        fine = refined.grammar()
        same = np.arange(len(self.corpus.labels), dtype=np.int32)
        stages = [Stage(refined.raw_grammar(fine))]
        middle = (len(self.splits) + 1) // 2
        if middle == len(self.splits):
            return [*stages, Stage(fine, same, fine.label.astype(np.int32))]
        coarse, symbol_map = refined.projected(fine, self.ancestors(middle))
        return [*stages, Stage(coarse, same, coarse.label.astype(np.int32)), Stage(fine, same, symbol_map)]


class SiteParts(NamedTuple):
    """What a grammar with sites is made of; see `SiteGrammar`."""

    corpus: FlatCorpus
    trees: TreeArrays
    words: Words
    subcategories: Subcategories
    means: SiteMeans
    base: str
    levels: int
