"""How many tokens a text will be, without a tokenizer: good enough to reserve, settled later.

A tokenizer costs a hundred times as much on the ingress's loop, and would have to be loaded there
for every model. The weights are tokens per character of each kind, fitted to a
byte-level BPE of 49,000 and a WordPiece of 30,000 entries so that the sum errs a little high.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping
from typing import Any, Final

from modelyard.contract.openai import CAPS
from modelyard.contract.operations import Operation
from modelyard.contract.token_ids import is_token_ids
from modelyard.quota.figures import ModelClass
from modelyard.quota.reservation import Need

SAMPLE_CHARACTERS: Final = 8192  # of a longer text, even slices are read and scaled up
_SLICES: Final = 16
_ASCII: Final = bytes(range(128))
_UPPER: Final = string.ascii_uppercase.encode()
_DIGITS: Final = string.digits.encode()
_SPACE: Final = string.whitespace.encode()
_PUNCTUATION: Final = string.punctuation.encode()
_LATIN_LEADS: Final = bytes(range(0xC2, 0xC6))  # first bytes of the accented letters of Europe
_TWO_LEADS: Final = bytes(range(0xC6, 0xE0))
_THREE_LEADS: Final = bytes(range(0xE0, 0xF0))
_FOUR_LEADS: Final = bytes(range(0xF0, 0xF8))
_LOWER_WEIGHT: Final = 0.24
_ASCII_WEIGHTS: Final = (
    (_UPPER, 1.25 - _LOWER_WEIGHT),
    (_DIGITS, 1.15 - _LOWER_WEIGHT),
    (_PUNCTUATION, 0.9 - _LOWER_WEIGHT),
    (_SPACE, 0.13 - _LOWER_WEIGHT),
)
_OTHER_WEIGHTS: Final = (
    # An accent breaks a word into pieces that a tokenizer of English has no entry for.
    (_LATIN_LEADS, 4.5),
    (_TWO_LEADS, 1.0),
    (_THREE_LEADS, 2.0),
    (_FOUR_LEADS, 3.0),
)
_READ: Final = ("input", "instructions", "tools", "text")  # what of /v1/responses a model sees
_PER_MESSAGE: Final = 6  # a chat template's marks around one message
_PER_REQUEST: Final = 24  # a template's own system prompt; a small model's marks
_PER_TEXT: Final = 4


def estimate_tokens(text: str) -> int:
    """Tokens of a text, more likely too many than too few.

    Costs 3 to 10 microseconds per KiB up to SAMPLE_CHARACTERS, then no more.
    """
    if len(text) <= SAMPLE_CHARACTERS:
        return int(_weigh(text)) + 1
    step, size = len(text) // _SLICES, SAMPLE_CHARACTERS // _SLICES
    sample = "".join([text[at * step : at * step + size] for at in range(_SLICES)])
    return int(_weigh(sample) * len(text) / len(sample)) + 1


def _weigh(text: str) -> float:
    data = text.encode(errors="replace")
    tokens = len(data) * _LOWER_WEIGHT
    if len(data) != len(text):
        other = data.translate(None, _ASCII)
        tokens -= len(other) * _LOWER_WEIGHT
        tokens += sum(weight * _count(other, leads) for leads, weight in _OTHER_WEIGHTS)
    return tokens + sum(weight * _count(data, kind) for kind, weight in _ASCII_WEIGHTS)


def _count(data: bytes, kind: bytes) -> int:
    return len(data) - len(data.translate(None, kind))


def need_of(
    request_id: str,
    tenant: str,
    model_class: ModelClass,
    operation: Operation,
    body: Mapping[str, Any],
    cap_tokens: int,
    choices: int,
) -> Need:
    """What a validated request may use. `body` is as its caller sent it; cap_tokens bounds one of
    `choices` answers, as `Work` has them.

    Of two explicit caps the larger counts, whichever runs: else a small one would hide a large one.
    """
    tokens, is_exact = input_tokens(operation, body)
    caps = [cap for name in CAPS.get(operation, ()) if (cap := body.get(name)) is not None]
    explicit = bool(caps) or operation is Operation.GENERATE
    return Need(
        request_id,
        tenant,
        model_class,
        tokens,
        max([cap_tokens, *caps]) * choices,
        choices,
        is_exact,
        explicit,
    )


def input_tokens(operation: Operation, body: Mapping[str, Any]) -> tuple[int, bool]:
    """Input tokens of a validated body, and whether they are exact (token ids, not text)."""
    match operation:
        case Operation.GENERATE | Operation.CHAT:
            return _chat(body), False
        case Operation.COMPLETIONS:
            return _prompts(body["prompt"])
        case Operation.EMBED:
            return _prompts(body["input"])
        case Operation.RERANK:
            return _pairs(body["query"], body["documents"]), False
        case Operation.SCORE:
            left = body.get("text_1") or body.get("queries")
            return _pairs(left, body.get("text_2") or body.get("documents")), False
        case _:
            return _PER_REQUEST + _texts([body.get(name) for name in _READ]), False


def _chat(body: Mapping[str, Any]) -> int:
    messages = body["messages"]
    rest = {name: body.get(name) for name in ("tools", "response_format")}
    return _PER_REQUEST + _PER_MESSAGE * len(messages) + _texts(messages) + _texts(rest)


def _prompts(prompt: Any) -> tuple[int, bool]:
    if is_token_ids(prompt):
        return len(prompt), True
    if isinstance(prompt, list) and all(map(is_token_ids, prompt)):
        return sum(map(len, prompt)), True
    many = [prompt] if isinstance(prompt, str) else prompt
    return sum(_PER_TEXT + estimate_tokens(one) for one in many), False


def _pairs(left: Any, right: Any) -> int:
    """A reranker reads each query again with each document."""
    queries, documents = _plain(left), _plain(right)
    pairs = max(len(queries), len(documents))
    times = pairs if len(queries) == 1 else 1
    tokens = times * sum(map(estimate_tokens, queries)) + sum(map(estimate_tokens, documents))
    return tokens + _PER_TEXT * pairs


def _plain(texts: Any) -> list[str]:
    many = [texts] if isinstance(texts, str) else texts
    return [one if isinstance(one, str) else str(one.get("text", "")) for one in many]


def _texts(value: Any) -> int:
    """Every text in a JSON value, and the keys of objects, which a tool's schema shows the model.

    Iterative: a body may be nested as deep as its parser allowed.
    """
    tokens, left = 0, [value]
    said: list[str] = []
    while left:
        one = left.pop()
        if isinstance(one, str):
            said.append(one)
        elif isinstance(one, Mapping):
            tokens += 2 * len(one)
            left.extend(one.values())
        elif isinstance(one, Iterable):
            left.extend(one)
        elif one is not None:
            tokens += 1
    # Weighed together: a hundred thousand tiny parts would cost a call each.
    return tokens + len(said) + estimate_tokens("".join(said))
