"""Classes of the Berkeley parser, for English: the unknown-word model ``signature``."""

from collections.abc import Collection

from tsgkit.treebank.unknown._model import ROOT_CLASS, UnknownWordModel, is_capital

ENGLISH_SUFFIXES = ("ed", "ing", "ion", "er", "est", "ly", "ity", "y", "al")


def signature_classes(word: str, is_first: bool, vocabulary: Collection[str], max_suffix: int) -> list[str]:
    """Classes of the Berkeley parser, finest first.

    From fine to coarse, ``-KNOWNLC`` is dropped, ``-INITC`` becomes ``-CAPS``, and then the last part is dropped, one
    at a time.

    Examples
    --------
    >>> signature_classes("Quickly", True, {"quickly"}, 0)
    ['UNK-INITC-KNOWNLC-ly', 'UNK-INITC-ly', 'UNK-CAPS-ly', 'UNK-CAPS', 'UNK']
    """
    n_capitals = sum(is_capital(char) for char in word)
    has_digit = any(map(str.isdecimal, word))
    lowered = word.lower()
    first_word_parts, case = [], []
    if word and is_capital(word[0]):
        case = ["-CAPS"]
        if is_first and n_capitals == 1:
            first_word_parts = ["-INITC-KNOWNLC", "-INITC"] if lowered in vocabulary else ["-INITC"]
    elif word and not word[0].isalpha() and n_capitals:
        case = ["-CAPS"]
    elif any(map(str.islower, word)):
        case = ["-LC"]
    rest = ["-NUM"] * has_digit + ["-DASH"] * ("-" in word)
    if lowered.endswith("s") and len(word) >= 3:
        rest += ["-s"] * (lowered[-2] not in "siu")
    elif len(word) >= 5 and "-" not in word and not (has_digit and n_capitals):
        rest += ["-" + suffix for suffix in ENGLISH_SUFFIXES if lowered.endswith(suffix)][:1]
    finest = [ROOT_CLASS + part + "".join(rest) for part in first_word_parts]
    parts = case + rest
    return finest + [ROOT_CLASS + "".join(parts[:end]) for end in range(len(parts), -1, -1)]


MODEL = UnknownWordModel(signature_classes)
