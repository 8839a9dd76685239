"""Recipes: every choice of a published experiment, by one name.

A recipe is the settings of a model, the preparation of its trees, the number of chains, and how sentences are parsed.
``tsgkit train --recipe=NAME`` takes all of it that is not given by other options. What a paper leaves open, and where a
recipe differs from it, the recipe says (`Recipe.deviations`). Other packages add recipes by the entry point group
``tsgkit.recipes``.
"""

from dataclasses import dataclass

from tsgkit import _plugins
from tsgkit._registry import Registry
from tsgkit.inference._insertion import InsertionSettings
from tsgkit.inference._settings import SamplingSettings
from tsgkit.inference._srtsg_settings import SrSettings
from tsgkit.inference._tsg import TsgSettings
from tsgkit.treebank import Binarization, UnknownWords

RECIPES: Registry["Recipe"] = _plugins.RECIPES


@dataclass(frozen=True)
class Recipe:
    """The choices of an experiment.

    Attributes
    ----------
    title : str
        The publication.
    settings : SamplingSettings
        Of the model, with its name as `recipe`; those for the small treebank, where a paper has two.
    binarization : Binarization
    unknown : UnknownWords
    n_chains : int
        Chains of which the best on development data is the model; 1 where the publication has means over runs.
    parsing : str
        The options of ``tsgkit parse``.
    full : str
        The options that the full treebank needs in addition.
    deviations : tuple of str
        What differs from the publication, or is not said there; one sentence each.

    Examples
    --------
    >>> recipe = RECIPES["shindo2012"]
    >>> recipe.settings.kind, recipe.settings.splits, recipe.unknown.threshold, recipe.n_chains
    ('srtsg', 3, 5, 10)
    """

    title: str
    settings: SamplingSettings
    binarization: Binarization
    unknown: UnknownWords
    n_chains: int = 1
    parsing: str = ""
    full: str = ""
    deviations: tuple[str, ...] = ()


COHN2010 = Recipe(
    title="Cohn & Blunsom (2010), blocked sampler from the minimal initialisation",
    settings=TsgSettings(
        recipe="cohn2010", iterations=5000, sampler="blocked", process="dp", init="minimal", batch=1, average=1
    ),
    binarization=Binarization("right", 0, 1),
    unknown=UnknownWords("one", 1),
    parsing="--objective=mer-sampled --correct",
    full="--start=SMALL --iterations=6500",
    deviations=(
        "The paper has the data setup of an earlier one; right binarisation without the names of siblings and one class"
        " for words that occur once are our reading.",
        "The priors of alpha and s are not given; here they are Gamma(1, 1) and Beta(1, 1).",
        "The number of sampled derivations per sentence is not given.",
    ),
)

SHINDO2011 = Recipe(
    title="Shindo, Fujino & Nagata (2011)",
    settings=InsertionSettings(recipe="shindo2011", iterations=1000, sampler="blocked", batch=1, average=1),
    binarization=Binarization("centre-head", 0, 1),
    unknown=UnknownWords("three", 1),
    parsing="--objective=mer-sampled --samples=10000",
    full="--iterations=3500",
    deviations=(
        "The initial derivations are not given; here every node is a substitution site.",
        "Which lexical features make the three classes of unknown words is not given.",
        "The paper prohibits neither wrapping nor simultaneous adjunction, but gives each node at most one insertion by"
        " its equations; so does the recipe, and --stacked allows several.",
    ),
)

SHINDO2012 = Recipe(
    title="Shindo, Miyao, Fujino & Nagata (2012)",
    settings=SrSettings(
        recipe="shindo2012",
        splits=3,
        split_iterations=1000,
        merge=0.5,
        merge_at=1.0,
        merge_loss="marginal",
        lexicon="rules",
        base="uniform",
        batch=1,
        type_moves=500,
        type_mode="map",
        site_iterations=2000,
        sites="local",
        joint_iterations=0,
        average=1,
    ),
    binarization=Binarization("right", 0, 1),
    unknown=UnknownWords("signature", 5),
    n_chains=10,
    parsing="--objective=max-rule --span-power=0",
    full="--splits=6",
    deviations=(
        "Stop probabilities are sampled; the paper chooses them on development data (--stop-prob fixes them).",
        "The tree-level sampler resamples 500 types per iteration; the paper does not say how many.",
        "The base probability of a fragment sums over the refinements of its internal nodes, so that it is a"
        " distribution; the paper ignores them.",
        "On the full treebank, the paper initialises the sampling of sites with the final sample of the small one; the"
        " subcategories of the two differ, and --start skips the splits that the start has instead.",
    ),
)
