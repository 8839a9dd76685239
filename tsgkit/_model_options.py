"""Settings of models as options of the command line.

Every setting of a built-in model is an option of the same name, with dashes; ``--set`` gives those of other models.
"""

import re
from collections import Counter
from dataclasses import asdict, fields
from typing import Any, get_type_hints

from tsgkit._cli import choice, integer, number
from tsgkit._plain import types_of
from tsgkit.errors import SettingError, UsageError
from tsgkit.inference._entry import MODELS, ModelEntry
from tsgkit.inference._recipes import RECIPES, Recipe
from tsgkit.inference._settings import Settings

DEFAULT_MODEL = "srtsg"


def option_of(name: str) -> str:
    """The option of a setting."""
    return f"--{name.replace('_', '-')}"


def preparation_options(entry: ModelEntry | Recipe) -> dict[str, str]:
    """The options of the preparation with their defaults for a model or a recipe."""
    binarization, unknown = entry.binarization, entry.unknown
    return {
        "--binarize": binarization.method,
        "--horizontal": "all" if binarization.horizontal is None else str(binarization.horizontal),
        "--vertical": str(binarization.vertical),
        "--unknown": unknown.model,
        "--threshold": str(unknown.threshold),
        "--min-types": str(unknown.min_types),
    }


def fill_preparation(arguments: dict[str, Any], entry: ModelEntry | Recipe) -> None:
    """Set options of the preparation that are not given to their defaults for a model or a recipe."""
    defaults = preparation_options(entry)
    arguments |= {option: value for option, value in defaults.items() if arguments[option] is None}


def recipe_of(arguments: dict[str, Any]) -> tuple[Recipe | None, list[str]]:
    """The recipe that is asked for, and which of its choices are replaced; sets model and chains if they are not given.

    Raises
    ------
    UsageError
        If the model is another, or if there is nothing to choose the best chain by.
    """
    name = arguments["--recipe"]
    if name is None:
        arguments |= {"--model": arguments["--model"] or DEFAULT_MODEL, "--chains": arguments["--chains"] or "1"}
        return None, []
    recipe = RECIPES.require(name, "--recipe")
    kind, n_chains = recipe.settings.kind, recipe.n_chains
    if arguments["--model"] not in (None, kind):
        raise UsageError(f"--model={arguments['--model']}: the recipe {name} is one for --model={kind}")
    if n_chains > 1 and arguments["--chains"] is None and arguments["--dev"] is None:
        raise UsageError(f"--recipe={name} selects the best of {n_chains} chains on --dev=TREEBANK; or give --chains=1")
    replaced = replaced_choices(arguments, recipe)
    arguments |= {"--model": kind, "--chains": arguments["--chains"] or str(n_chains)}
    return recipe, replaced


def replaced_choices(arguments: dict[str, Any], recipe: Recipe) -> list[str]:
    """The given options that differ from what a recipe has, for a message."""
    choices = preparation_options(recipe) | {"--chains": str(recipe.n_chains)}
    choices |= {option_of(name): shown(value) for name, value in asdict(recipe.settings).items()}
    given = {option: arguments[option] for option in choices if arguments[option] not in (None, False)}
    shown_values = {option: "yes" if value is True else value for option, value in given.items()}
    return [
        f"{option}={value} instead of {choices[option]}"
        for option, value in shown_values.items()
        if value != choices[option]
    ]


def model_settings(arguments: dict[str, Any], entry: ModelEntry, recipe: Recipe | None = None) -> Settings:
    """The settings from the given options; all others are those of the recipe, or have their defaults."""
    names = [each.name for each in fields(entry.settings)]
    given = {option: arguments[option] for option in model_options() if arguments[option] not in (None, False)}
    if strays := [option for option in given if option not in map(option_of, names)]:
        raise UsageError(f"{strays[0]}: the model {entry.settings.kind} has no such setting{remedy(strays[0], names)}")
    values = {option_of(name): (name, value) for name, value in other_settings(arguments["--set"], entry).items()}
    values |= {option_of(name): (name, given[option_of(name)]) for name in names if option_of(name) in given}
    hints = get_type_hints(entry.settings)
    try:
        chosen = {} if recipe is None else asdict(recipe.settings)
        chosen |= {name: value_of(option, text, hints[name]) for option, (name, text) in values.items()}
        return entry.settings(**chosen)
    except SettingError as error:
        raise UsageError(f"{option_of(error.name)}={error.value}: {error.problem}") from None


def remedy(option: str, names: list[str]) -> str:
    """Which models have the setting that another has not, and which similar settings that one has."""
    kinds = [
        name for name in MODELS.built_in if option in (option_of(each.name) for each in fields(MODELS[name].settings))
    ]
    last_word = option.rpartition("-")[2]
    similar = [option_of(name) for name in names if option_of(name).endswith(f"-{last_word}")]
    others = f"; instead it has {', '.join(similar)}" if similar else ""
    listed = " and ".join(filter(None, (", ".join(kinds[:-1]), kinds[-1])))
    return f", only {listed} {'has' if len(kinds) == 1 else 'have'} it{others}"


def with_defaults(usage: str | None) -> str:
    """A usage text in which ``{default}`` is replaced by the defaults of the option for the built-in models.

    Examples
    --------
    >>> with_defaults("  --average=N  the mean over the last N samples {default}")
    '  --average=N  the mean over the last N samples (default: 20, srtsg: 30)'
    """
    parts = re.split(r"^( +(?:-\w(?: [A-Z]+)?, )?(--[\w-]+))", usage or "", flags=re.MULTILINE)
    text = parts[0]
    # Before each option, its name alone, and what follows it.
    for indented, option, description in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        filled = description.replace("{default}", default_text(option)) if "{default}" in description else description
        text += indented + filled
    return text


def default_text(option: str) -> str:
    """The defaults of an option, for a usage text: the most common one, and those of models with another."""
    values: dict[str, str] = {}
    for name in MODELS.built_in:
        entry = MODELS[name]
        defaults = {option_of(each.name): shown(each.default) for each in fields(entry.settings)}
        defaults |= {option_of(name): text for name, text in entry.settings.by_size.items()}
        defaults |= preparation_options(entry)
        if option in defaults:
            values[name] = defaults[option]
    common = Counter(values.values()).most_common(1)[0][0]
    others = (f", {name}: {value}" for name, value in values.items() if value != common)
    return f"(default: {common}{''.join(others)})"


def shown(value: object) -> str:
    """A default as on the command line."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def model_options() -> list[str]:
    """The options that are settings of built-in models."""
    entries = [MODELS[name] for name in MODELS.built_in]
    return list(dict.fromkeys(option_of(each.name) for entry in entries for each in fields(entry.settings)))


def other_settings(given: list[str], entry: ModelEntry) -> dict[str, str]:
    """The settings given by --set, which have no other option."""
    found: dict[str, str] = {}
    allowed = {each.name for each in fields(entry.settings) if option_of(each.name) not in model_options()}
    for setting in given:
        name, _, value = setting.partition("=")
        if name not in allowed:
            listed = f"; it has {', '.join(sorted(allowed))}" if allowed else ""
            raise UsageError(f"--set={setting}: the model {entry.settings.kind} has no such setting{listed}")
        found[name] = value
    return found


def value_of(option: str, text: str | bool, hint: Any) -> Any:
    """The value of a setting from its text on the command line."""
    kinds = types_of(hint)
    if bool in kinds:
        return text is True or choice({option: text}, option, ("yes", "no")) == "yes"
    if int in kinds:
        return integer({option: text}, option)
    return number({option: text}, option) if float in kinds else text
