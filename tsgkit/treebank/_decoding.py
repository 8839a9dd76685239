"""Bytes of treebanks as lines of text: strictly, with the place of what is not in the encoding.

First stage of the flow, below the readers of text. An encoding that a preset assumes is checked against the first lines
beyond ASCII, since many treebanks are also distributed in UTF-8.
"""

import codecs
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from tsgkit._files import DAMAGED_ARCHIVE, TooLongError, require_text
from tsgkit._streams import BYTE_ORDER_MARK, until_failure
from tsgkit.errors import TreebankError, UsageError
from tsgkit.treebank._formats import ENCODING

NOT_TEXT = {"\0": "a NUL character, as in UTF-16 and in damaged files"}
BAD_CHARACTER = re.compile("[\ud800-\udfff\0]")
LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
# Byte order marks that a file in another encoding must not begin with.
MARKS = {codecs.BOM_UTF8: "UTF-8", codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}
DAMAGED = "the compressed file is damaged or cut short"
# Whether a file is UTF-8 is decided by so many lines, from the first one beyond ASCII on.
MOST_DECIDING_LINES = 100


def decoded(lines: Iterable[bytes], path: str, encoding: str, *, is_assumed: bool = False) -> Iterator[str]:
    """Lines of the file `path` as text, decoded one by one so that an error names the line.

    An encoding that is assumed, and not the user's, is checked: lines that are valid UTF-8 are taken to be in it.
    """
    number, assumed = 0, encoding if is_assumed else ""
    try:
        for line, used in with_encoding(lines, encoding, is_assumed=is_assumed):
            number, encoding = number + 1, used
            if number == 1:
                require_text(line, path)
                require_no_mark(line, path, encoding)
            text = line.decode(encoding)
            if bad := BAD_CHARACTER.search(text):
                what = NOT_TEXT.get(bad[0], "half a character")
                message = f"not text in {encoding}: {what}; is another encoding right?"
                raise TreebankError(message, path, number, bad.start() + 1)
            text = text.removeprefix(BYTE_ORDER_MARK) if number == 1 else text
            if "\r" not in text or text.find("\r") == len(text) - 2:
                yield text
                continue
            for piece in LINE.findall(text):  # carriage returns alone end lines, too
                yield piece
                number += 1
            number -= 1
    except UnicodeDecodeError as error:
        remedy = "is another encoding right?"
        if assumed not in ("", encoding):
            remedy = (
                f"the lines before are, so {assumed}, the encoding of the preset, was not taken; --encoding names one"
            )
        problem = f"not valid {encoding}: byte {error.object[error.start]:#04x}; {remedy}"
        column = len(error.object[: error.start].decode(encoding, errors="replace")) + 1
        raise TreebankError(problem, path, number, column) from None
    except TooLongError as error:
        raise TreebankError(str(error), path, number + 1) from None
    except (LookupError, UnicodeError):  # a codec that is not for text
        raise UsageError(f"encoding {encoding!r}: not known") from None
    except DAMAGED_ARCHIVE as error:
        raise TreebankError(f"{DAMAGED} ({error})", path, number + 1) from None


def with_encoding(lines: Iterable[bytes], encoding: str, *, is_assumed: bool) -> Iterator[tuple[bytes, str]]:
    """Lines with their encoding: the given one, or UTF-8 if that is assumed and contradicted by the first lines."""
    failures: list[Exception] = []
    rest = until_failure(lines, failures)
    if is_assumed and encoding != ENCODING:
        for line in rest:
            if line.isascii():
                yield line, encoding
                continue
            first = [line, *islice(rest, MOST_DECIDING_LINES - 1)]
            encoding = ENCODING if all(map(is_utf8, first)) else encoding
            rest = chain(first, rest)
            break
    for line in rest:
        yield line, encoding
    if failures:
        raise failures[0]


def is_utf8(line: bytes) -> bool:
    """Whether a line is valid UTF-8, which text in another encoding hardly ever is, unless it is ASCII."""
    try:
        line.decode(ENCODING)
    except UnicodeDecodeError:
        return False
    return True


def require_no_mark(line: bytes, path: str, encoding: str) -> None:
    """Raise an error if a file begins with the byte order mark of another encoding."""
    name = codecs.lookup(encoding).name
    for mark, marked in MARKS.items():
        if line.startswith(mark) and not name.startswith(marked.lower()):
            remedy = "--encoding=utf-8 reads it" if marked == "UTF-8" else "convert it to UTF-8"
            raise TreebankError(f"not {encoding}: the file begins with the mark of {marked}; {remedy}", path, 1, 1)
