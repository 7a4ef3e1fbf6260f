"""What an EBNF grammar costs an engine: its rules written out, as `expressions` counts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Final

from modelyard.contract.characters import ANY, bits_of_character
from modelyard.contract.expressions import MAX_GROUPS, Cost, cost_of_tokens, refusal

_TOKEN: Final = re.compile(
    r"""\s+ | \#[^\n]* | ::= | "(?:\\.|[^"\\])*" | \[(?:\\.|[^\]\\])*\] | \{[\s0-9,]*\}
    | [A-Za-z_][A-Za-z0-9_.-]* | .""",
    re.VERBOSE | re.DOTALL,
)
_NAME: Final = re.compile("[A-Za-z_]")


def cost_of_ebnf(text: str) -> Cost:
    """Of the grammar's costliest rule. Raises InvalidRequest for more than the bounds, for rules
    that call themselves (`s ::= s s` took 0.7 s a token) and for Lark's syntax."""
    grammar = _Grammar(_rules(text))
    costs = [grammar.cost(name) for name in grammar.rules]
    return max(costs, key=lambda cost: cost.states, default=Cost())


@dataclass(slots=True)
class _Grammar:
    rules: dict[str, list[str]]
    known: dict[str, Cost] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)

    def cost(self, name: str) -> Cost:
        if name in self.known:
            return self.known[name]
        if name in self.open:
            raise refusal("a rule of the grammar calls itself: write out what may repeat")
        if name not in self.rules:
            raise refusal("the grammar names a rule that it does not define: define it")
        if len(self.open) == MAX_GROUPS:
            raise refusal(f"the grammar's rules call one another more than {MAX_GROUPS} deep")
        self.open.append(name)
        named = {token: self._piece(token) for token in self.rules[name]}
        self.open.pop()
        costs = {token: cost for token, cost in named.items() if cost is not None}
        self.known[name] = cost_of_tokens(self.rules[name], costs)
        return self.known[name]

    def _piece(self, token: str) -> Cost | None:
        if _NAME.match(token):
            return self.cost(token)
        return _literal(token[1:-1]) if len(token) > 1 and token.startswith('"') else None


def _literal(text: str) -> Cost:
    """One state. Punctuation is the likeliest to end a run of what stands around it."""
    if not text or "\\" in text:
        return Cost(1, bits=ANY)
    sure = min(text, key=str.isalnum)
    return Cost(1, bits=reduce(or_, map(bits_of_character, text)), sure=bits_of_character(sure))


def _rules(text: str) -> dict[str, list[str]]:
    """The tokens of each rule's right side."""
    # vLLM's own test, on lines cut at what may be a comment: what fails it is read as Lark, whose
    # syntax we do not count.
    if not any("::=" in re.split("#|//", line)[0] for line in text.split("\n")):
        raise refusal("a grammar must be EBNF, rules as `root ::= ...`")
    rules: dict[str, list[str]] = {}
    body: list[str] = []
    for token in _TOKEN.findall(text):
        if token == "::=":
            name = body.pop() if body else ""
            body = rules.setdefault(name, [])
        elif not token.isspace() and not token.startswith("#"):
            body.append(token)
    return rules
