"""What a wrong word should have been: the end of a message."""

from collections.abc import Iterable


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """A guess at what a wrong word should have been, as the end of a sentence; empty if nothing is similar.

    Examples
    --------
    >>> did_you_mean("trian", ["train", "parse"])
    '; did you mean train?'
    """
    found = nearest(word, words)
    return f"; did you mean {found}?" if found else ""


def nearest(word: str, words: Iterable[str]) -> str:
    """The word that a wrong one is most similar to, whatever the case of its letters; empty if none is similar.

    Examples
    --------
    >>> nearest("CFG", ["cfg", "tsg"]), nearest("xyz", ["cfg"])
    ('cfg', '')
    """
    import difflib  # noqa: PLC0415 - only errors need it

    by_lower = {each.lower(): each for each in words}
    near = difflib.get_close_matches(word.lower(), list(by_lower), n=1, cutoff=0.6)
    return by_lower[near[0]] if near else ""


def one_of(word: str, words: Iterable[str]) -> str:
    """What a wrong word should have been, for the end of a sentence: all that are right, and a guess.

    Examples
    --------
    >>> one_of("strsg", ["cfg", "srtsg"])
    'one of cfg, srtsg; did you mean srtsg?'
    """
    known = list(words)
    return f"one of {', '.join(known)}{did_you_mean(word, known)}"
