"""Which characters a piece of a regular expression or grammar may match, as the bits of an integer.

One bit for each ASCII character and one for all others: enough to tell whether two pieces can
match the same text.
"""

from __future__ import annotations

import re
import string
from typing import Final

ANY: Final = (1 << 129) - 1
_OTHERS: Final = 1 << 128
_DIGITS: Final = sum(1 << ord(one) for one in string.digits)
_WORDS: Final = _DIGITS | sum(1 << ord(one) for one in string.ascii_letters + "_")
_SPACES: Final = sum(1 << ord(one) for one in string.whitespace)
_NAMED: Final = {  # as the engine reads them: ASCII only
    "d": _DIGITS,
    "w": _WORDS,
    "s": _SPACES,
    "D": ANY & ~_DIGITS,
    "W": ANY & ~_WORDS,
    "S": ANY & ~_SPACES,
    "n": 1 << ord("\n"),
    "r": 1 << ord("\r"),
    "t": 1 << ord("\t"),
}
_ITEM: Final = re.compile(r"\\.|.", re.DOTALL)


def bits_of(token: str) -> int:
    """Of one token: a character, an escape, `.`, or a class in brackets."""
    if token == ".":
        return ANY
    if len(token) > 1 and token.startswith("["):
        return _of_class(token[1:-1])
    return _of_item(token)


def _of_class(text: str) -> int:
    negated, text = text.startswith("^"), text.removeprefix("^")
    items = _ITEM.findall(text)
    bits, index = 0, 0
    while index < len(items):
        if index + 2 < len(items) and items[index + 1] == "-":
            piece, step = _between(items[index], items[index + 2]), 3
        else:
            piece, step = _of_item(items[index]), 1
        if piece == ANY:
            return ANY  # perhaps too wide, and so would be too narrow when negated
        bits, index = bits | piece, index + step
    # The bit of all others stands for many: a class that names some leaves some.
    return (ANY & ~bits) | _OTHERS if negated else bits


def _between(first: str, last: str) -> int:
    if len(first) > 1 or len(last) > 1:
        return ANY
    ascii_bits = sum(1 << code for code in range(ord(first), min(ord(last), 127) + 1))
    return ascii_bits | (0 if last.isascii() else _OTHERS)


def _of_item(item: str) -> int:
    if not item.startswith("\\") or len(item) < 2:
        return bits_of_character(item)
    if item[1] in _NAMED:
        return _NAMED[item[1]]
    # Escapes of numbers are taken as anything: too wide is safe.
    return ANY if item[1].isalnum() else bits_of_character(item[1])


def bits_of_character(character: str) -> int:
    return 1 << ord(character) if character.isascii() else _OTHERS
