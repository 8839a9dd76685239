"""The tables of all parts that plug in, with the names of those that come with tsgkit.

They are here and not in the modules that define the parts, so that `--help` and completion can list names without
importing numpy and nltk. The module that defines a kind of part has its table under the same name, with its type.
"""

from typing import Any

from tsgkit._registry import Registry

READERS: Registry[Any] = Registry(
    "reader",
    "tsgkit.readers",
    {
        name: f"tsgkit.treebank._{name}:READER"
        for name in (
            *("brackets", "export", "tigerxml", "alpino", "ancora", "genia", "ftb"),
            *("sinica", "discbracket", "conllu"),
        )
    },
)
WRITERS: Registry[Any] = Registry(
    "writer",
    "tsgkit.writers",
    {
        "line": "tsgkit.treebank._brackets:write_lines",
        "pretty": "tsgkit.treebank._brackets:write_pretty",
        "words": "tsgkit.treebank._brackets:write_words",
        "conllu": "tsgkit.treebank._dependencies:write_conllu",
        "export": "tsgkit.treebank._export:write_export",
        "tigerxml": "tsgkit.treebank._tigerxml:write_tigerxml",
        "discbracket": "tsgkit.treebank._discbracket:write_discbracket",
    },
)
UNKNOWN_WORDS: Registry[Any] = Registry(
    "unknown-word model",
    "tsgkit.unknown_words",
    {name: f"tsgkit.treebank.unknown._{name}:MODEL" for name in ("unicode", "signature", "three", "one")},
)
BASE_DISTRIBUTIONS: Registry[Any] = Registry(
    "base distribution",
    "tsgkit.base_distributions",
    {
        "frequency": "tsgkit.models._base_distributions:frequency",
        "uniform": "tsgkit.models._base_distributions:uniform",
    },
)
BACK_OFFS: Registry[Any] = Registry(
    "back-off", "tsgkit.back_offs", {"unrefined": "tsgkit.models._back_off:UNREFINED_ROOT"}
)
RECIPES: Registry[Any] = Registry(
    "recipe",
    "tsgkit.recipes",
    {
        "cohn2010": "tsgkit.inference._recipes:COHN2010",
        "shindo2011": "tsgkit.inference._recipes:SHINDO2011",
        "shindo2012": "tsgkit.inference._recipes:SHINDO2012",
    },
)
OBJECTIVES: Registry[Any] = Registry(
    "objective",
    "tsgkit.objectives",
    {
        "mpd": "tsgkit.parsing._objectives:MPD",
        "mpp": "tsgkit.parsing._objectives:MPP",
        "mpp-sampled": "tsgkit.parsing._objectives:MPP_SAMPLED",
        "mer": "tsgkit.parsing._objectives:MER",
        "mer-sampled": "tsgkit.parsing._objectives:MER_SAMPLED",
        "max-rule": "tsgkit.parsing._objectives:MAX_RULE",
        "max-rule-sampled": "tsgkit.parsing._objectives:MAX_RULE_SAMPLED",
    },
)
PRODUCTS: Registry[Any] = Registry(
    "product",
    "tsgkit.products",
    {"rules": "tsgkit.parsing._votes:RULES", "trees": "tsgkit.parsing._votes:TREES"},
)
