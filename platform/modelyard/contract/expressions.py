"""What a regular expression or an EBNF grammar costs an engine, counted without running it.

Three numbers tell: the states once repetitions are written out; how deep repetitions stand in one
another; and in how many ways a run of optional pieces can share out the same text, because the
engine follows all of them with every token. Measured with xgrammar 0.2.8, CPU: `.{0,8}` four times
1.4 s a step, `.{0,128}` twice 54 ms; over 40 steps `((.+)+)+` 0.3 s and `(((.+)+)+)+` over 10 s.

One pass, and no pattern that backtracks: that would be as good a way to hold up the ingress.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from modelyard.contract.characters import ANY, bits_of
from modelyard.contract.errors import InvalidRequest

MAX_REPETITIONS: Final = 256  # a{256}
MAX_STATES: Final = 1024  # of all expressions of a request together
MAX_NESTED: Final = 2  # (a+)+
MAX_GROUPS: Final = 32  # parentheses in parentheses
MAX_CHOICES: Final = 2  # optional pieces in a run, whatever their length
MAX_WAYS: Final = 256  # of a run with more of them
_ENDLESS: Final = 64  # iterations of a group under * or +, for its ways
_ENDLESS_WAYS: Final = 8  # of each iteration of what repeats without an end: `(.+){4}`
_MANY: Final = 10**6

_TOKEN: Final = re.compile(r"""\\. | \[(?:\\.|[^\]\\])*\] | \{[\s0-9,]*\} | .""", re.X | re.S)


@dataclass(frozen=True, slots=True)
class Cost:
    """Of an expression, or of a piece of one.

    states: atoms, each as often as it may repeat. nested: repetitions in repetitions. choices,
    ways: of the run of optional pieces that it ends with. bits: the characters it may hold (see
    `characters`). parted: each of its iterations holds a character that ends a run of others.
    """

    states: int = 0
    nested: int = 0
    choices: int = 0
    ways: int = 1
    bits: int = 0
    parted: bool = False
    sure: int = 0  # bits of a character that it holds for certain; 0: any of `bits`
    endless: bool = False  # whether a part of it repeats without an end


@dataclass(frozen=True, slots=True)
class _Alternative:
    states: int
    choices: int
    ways: int
    first: int


@dataclass(slots=True)
class _Group:
    """What stands between two parentheses, as far as it was read."""

    states: int = 0
    nested: int = 0
    choices: int = 0
    ways: int = 1
    run: int = 0  # bits of the run that is open
    bits: int = 0
    loose: int = 0  # bits of all optional pieces
    fixed: list[int] = field(default_factory=list)  # bits of each piece that must be there
    other: list[_Alternative] = field(default_factory=list)
    other_states: int = 0  # of those together
    first: int = 0  # bits that the alternative may begin with
    begun: bool = False  # whether a piece that must be there was read in it
    endless: bool = False
    last: tuple[Cost, int, int | None] | None = None  # awaits its quantifier

    def alternative(self) -> None:
        self.flush()
        states = self.states - self.other_states
        self.other_states = self.states
        first = self.first if self.begun else ANY  # it may be empty
        self.other.append(_Alternative(states, self.choices, self.ways, first))
        self.choices, self.ways, self.run, self.first, self.begun = 0, 1, 0, 0, False

    def close(self) -> Cost:
        self.alternative()
        unlike = _rivals(self.other)
        choices = max(one.choices for one in self.other) + bool(unlike)
        ways = max(one.ways for one in self.other) * max(unlike, 1)
        parted = len(self.other) == 1 and any(not one & self.loose for one in self.fixed)
        ways = min(ways, _MANY)
        return Cost(
            self.states, self.nested, choices, ways, self.bits, parted, endless=self.endless
        )

    def flush(self) -> None:
        if self.last is None:
            return
        piece, least, most = self.last
        self.last = None
        if (least, most) != (1, 1):
            piece = _repeated(piece, least, most)
        self._add(piece, required=least > 0)

    def _add(self, piece: Cost, *, required: bool) -> None:
        self.states += piece.states
        self.nested = max(self.nested, piece.nested)
        self.bits |= piece.bits
        self.first |= 0 if self.begun else piece.bits
        self.begun |= required
        sure = piece.sure or piece.bits
        if piece.parted or (required and not sure & self.run):
            self.choices, self.ways, self.run = 0, 1, 0
        if piece.choices:
            self.choices += piece.choices
            self.ways = min(self.ways * piece.ways, _MANY)
            self.run |= piece.bits
        if piece.choices or piece.endless:
            self.endless |= piece.endless
            self.loose |= piece.bits
        elif required:
            self.fixed.append(sure)
        _at_most(self.states, MAX_STATES, "states")
        _at_most(self.nested, MAX_NESTED, "repetitions in repetitions")
        if self.choices > MAX_CHOICES:
            _at_most(self.ways, MAX_WAYS, "ways to read one text by its optional pieces")


def _rivals(alternatives: list[_Alternative]) -> int:
    """How many may read the beginning of another's text, of which they take a different share.

    By bits and not by pairs: a grammar may hold two thousand alternatives.
    """
    firsts: dict[int, int] = {}
    for one in alternatives:
        firsts[one.states] = firsts.get(one.states, 0) | one.first
    seen = shared = 0
    for first in firsts.values():
        shared |= seen & first
        seen |= first
    return sum(bool(one.first & shared) for one in alternatives)


def _repeated(piece: Cost, least: int, most: int | None) -> Cost:
    times = max(least, 1) if most is None else most
    choices, ways = piece.choices, piece.ways
    if choices and not piece.parted:
        often = _ENDLESS if most is None else times
        choices, ways = choices * often, min(ways ** min(often, _ENDLESS), _MANY)
    if times > 1 and piece.endless and not piece.parted:
        choices, ways = choices + times, min(ways * _ENDLESS_WAYS ** min(times, 64), _MANY)
    if most is not None and least != most:
        choices, ways = choices + 1, min(ways * (most - least + 1), _MANY)
    nested = piece.nested + ((least, most) != (0, 1))
    endless = piece.endless or most is None
    states = piece.states * times
    return Cost(states, nested, choices, ways, piece.bits, piece.parted, endless=endless)


def cost_of_regex(text: str) -> Cost:
    """Raises InvalidRequest for more than the bounds."""
    return cost_of_tokens(_TOKEN.findall(text), {})


def cost_of_tokens(tokens: Iterable[str], named: Mapping[str, Cost]) -> Cost:
    """`named`: what a token costs that stands for a rule. Raises InvalidRequest."""
    groups, quantified = [_Group()], False
    for token in tokens:
        times = quantifier(token)
        if times is not None:
            # A second one is `a+?`, which repeats no further.
            if groups[-1].last is not None and not quantified:
                groups[-1].last = (groups[-1].last[0], *times)
        elif token == "|":
            groups[-1].alternative()
        elif token == "(":
            groups.append(_Group())
            _at_most(len(groups), MAX_GROUPS, "groups in groups")
        else:
            closes = token == ")" and len(groups) > 1
            piece = groups.pop().close() if closes else named.get(token) or _atom(token)
            groups[-1].flush()
            groups[-1].last = (piece, 1, 1)
        quantified = times is not None
    while len(groups) > 1:  # never closed: the engine will say so
        inner = groups.pop().close()
        groups[-1].flush()
        groups[-1].last = (inner, 1, 1)
    return groups[0].close()


def _atom(token: str) -> Cost:
    return Cost(1, 0, 0, 1, bits_of(token))


def quantifier(token: str) -> tuple[int, int | None] | None:
    """The least and most repetitions, None for no most; None for what is no quantifier."""
    if token in ("*", "+", "?"):
        return (int(token == "+"), 1 if token == "?" else None)
    if len(token) < 2 or not token.startswith("{"):
        return None
    counts = [number for number in re.split(r"[\s,]+", token[1:-1]) if number]
    # By length first: int() refuses more digits than 4300.
    if any(len(number) > 9 or int(number) > MAX_REPETITIONS for number in counts):
        raise refusal(f"an expression repeats more than {MAX_REPETITIONS} times: repeat less")
    least = int(counts[0]) if counts and "," not in token[: token.find(counts[0])] else 0
    if "," not in token:
        return (least, least)
    return (least, int(counts[-1]) if token[1:-1].rpartition(",")[2].strip() else None)


def _at_most(count: int, most: int, what: str) -> None:
    if count > most:
        raise refusal(f"an expression has more than {most} {what}: simplify it")


def refusal(text: str) -> InvalidRequest:
    return InvalidRequest(text)
