"""What a wrong word should have been: the end of a message."""

import os
from collections.abc import Iterable
from itertools import islice

# What other programs call what a command does.
COMMANDS_ELSEWHERE = {
    **dict.fromkeys(("fit", "learn"), "train"),
    **dict.fromkeys(("predict", "decode", "tag"), "parse"),
    **dict.fromkeys(("score", "evaluate", "evalb", "test"), "eval"),
    **dict.fromkeys(("show", "view", "print", "plot", "render", "tree"), "draw"),
    **dict.fromkeys(("convert", "preprocess", "binarize", "clean", "read", "split"), "prepare"),
    **dict.fromkeys(("fragments", "grammar", "rules"), "inspect"),
    **dict.fromkeys(("web", "server", "demo", "app"), "serve"),
    **dict.fromkeys(("diff", "differences"), "compare"),
    **dict.fromkeys(("describe", "file", "what"), "info"),
    **dict.fromkeys(("synthesize", "synthetic"), "generate"),
}
# How many names of files in a folder are compared with a wrong one, and how similar they must be.
MOST_FILES, LEAST_SIMILAR_FILE = 5_000, 0.8


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """A guess at what a wrong word should have been, as the end of a sentence; empty if nothing is similar.

    Examples
    --------
    >>> did_you_mean("trian", ["train", "parse"])
    '; did you mean train?'
    """
    found = nearest(word, words)
    return f"; did you mean {found}?" if found else ""


def similar_file(path: str) -> str:
    """What is wrong with the path of a file that there is not, as the end of a sentence: its folder, or its name.

    Examples
    --------
    >>> similar_file("no-such-folder/my.model")
    '; there is no folder no-such-folder'
    """
    folder, name = os.path.split(path)
    if folder and not os.path.isdir(folder):
        return f"; there is no folder {folder}"
    try:
        with os.scandir(folder or ".") as entries:
            names = [entry.name for entry in islice(entries, MOST_FILES)]
    except OSError:
        return ""
    found = nearest(name, names, LEAST_SIMILAR_FILE)
    return f"; did you mean {os.path.join(folder, found)}?" if found else ""


def nearest(word: str, words: Iterable[str], cutoff: float = 0.6) -> str:
    """The word that a wrong one is most similar to, whatever the case of its letters; empty if none is similar.

    Examples
    --------
    >>> nearest("CFG", ["cfg", "tsg"]), nearest("xyz", ["cfg"])
    ('cfg', '')
    """
    import difflib  # noqa: PLC0415 - only errors need it

    by_lower = {each.lower(): each for each in words}
    near = difflib.get_close_matches(word.lower(), list(by_lower), n=1, cutoff=cutoff)
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
