"""Does a replica answer its golden prompts as the version did when it was packaged?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from modelyard.lifecycle.golden import (
    ClassifierPrompt,
    EmbedderPrompt,
    GeneratorPrompt,
    GoldenPrompt,
    RerankerPrompt,
)
from modelyard.lifecycle.observed import (
    Classified,
    Embedded,
    Generated,
    NotFinite,
    Observed,
    Ranked,
)

_SHOWN: Final = 48  # characters of a text
_NO_NUMBERS: Final = "the model computes no numbers"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """What a golden prompt should have given, and what it gave: short texts."""

    prompt_id: str
    what: str
    expected: str
    got: str

    def __str__(self) -> str:
        return (
            f"golden prompt {self.prompt_id}: {self.what}: expected {self.expected}, got {self.got}"
        )


def compare(prompt: GoldenPrompt, observed: Observed) -> Mismatch | None:
    """The first difference beyond the prompt's tolerance, or None.

    The ids of the input are looked at first: with another tokenizer or template no output means
    anything, and it is those that must be mended.
    """
    match prompt, observed:
        case GeneratorPrompt(), Generated():
            return _generated(prompt, observed)
        case EmbedderPrompt(), Embedded():
            return _embedded(prompt, observed)
        case ClassifierPrompt(), Classified():
            return _classified(prompt, observed)
        case RerankerPrompt(), Ranked():
            return _ranked(prompt, observed)
        case _, NotFinite():
            return Mismatch(prompt.id, _NO_NUMBERS, "finite numbers", observed.got)
    return Mismatch(prompt.id, "another kind of answer", type(prompt).__name__, repr(observed))


def _generated(prompt: GeneratorPrompt, observed: Generated) -> Mismatch | None:
    if wrong := _input(prompt.id, prompt.prompt_token_ids, observed.prompt_token_ids):
        return wrong
    if not_finite := _not_finite(prompt.id, [v for row in observed.logprobs for v in row.values()]):
        return not_finite
    for place, (expected, logprob) in enumerate(
        zip(prompt.expected_token_ids, prompt.logprobs, strict=True)
    ):
        if place >= min(len(observed.token_ids), len(observed.logprobs)):
            return _text(prompt, observed, "it stopped early")
        likeliest, got = observed.logprobs[place], observed.token_ids[place]
        tolerance = prompt.logprob_tolerance
        if likeliest[got] - likeliest.get(expected, -math.inf) > tolerance:
            return _text(prompt, observed, "the text differs")
        if abs(likeliest[expected] - logprob) > tolerance:
            what = f"log-probability of token {place}, within {tolerance:g}"
            return Mismatch(prompt.id, what, f"{logprob:.3f}", f"{likeliest[expected]:.3f}")
        if got != expected:
            return None  # a near tie: from here on the two answers go different ways, both right
    if len(observed.token_ids) > len(prompt.expected_token_ids):
        return _text(prompt, observed, "it went on too long")
    return None


def _text(prompt: GeneratorPrompt, observed: Generated, what: str) -> Mismatch:
    return Mismatch(prompt.id, what, _short(prompt.expected_text), _short(observed.text))


def _embedded(prompt: EmbedderPrompt, observed: Embedded) -> Mismatch | None:
    if wrong := _input(prompt.id, prompt.token_ids, observed.token_ids):
        return wrong
    if not_finite := _not_finite(prompt.id, observed.vector):
        return not_finite
    if len(observed.vector) != len(prompt.expected):
        return Mismatch(
            prompt.id, "dimensions", str(len(prompt.expected)), str(len(observed.vector))
        )
    cosine = _cosine(prompt.expected, observed.vector)
    if cosine >= prompt.min_cosine:
        return None
    return Mismatch(prompt.id, "the vector's cosine", f"{prompt.min_cosine:g}", f"{cosine:.4f}")


def _classified(prompt: ClassifierPrompt, observed: Classified) -> Mismatch | None:
    if wrong := _input(prompt.id, prompt.token_ids, observed.token_ids):
        return wrong
    if not_finite := _not_finite(prompt.id, list(observed.probabilities.values())):
        return not_finite
    if set(observed.probabilities) != set(prompt.expected):
        return Mismatch(
            prompt.id,
            "the labels",
            _short(", ".join(sorted(prompt.expected))),
            _short(", ".join(sorted(observed.probabilities))),
        )
    for label, expected in prompt.expected.items():
        got = observed.probabilities[label]
        if abs(got - expected) > prompt.tolerance:
            what = f"the probability of {label}, within {prompt.tolerance:g}"
            return Mismatch(prompt.id, what, f"{expected:.3f}", f"{got:.3f}")
    return None


def _ranked(prompt: RerankerPrompt, observed: Ranked) -> Mismatch | None:
    ids = [one for row in prompt.token_ids for one in row]
    if wrong := _input(prompt.id, ids, [one for row in observed.token_ids for one in row]):
        return wrong
    if not_finite := _not_finite(prompt.id, observed.scores):
        return not_finite
    if len(observed.scores) != len(prompt.expected):
        return Mismatch(prompt.id, "scores", str(len(prompt.expected)), str(len(observed.scores)))
    for index, (expected, got) in enumerate(zip(prompt.expected, observed.scores, strict=True)):
        if abs(got - expected) > prompt.tolerance:
            what = f"the score of document {index}, within {prompt.tolerance:g}"
            return Mismatch(prompt.id, what, f"{expected:.3f}", f"{got:.3f}")
    return None


def _input(prompt_id: str, expected: Sequence[int], got: Sequence[int]) -> Mismatch | None:
    if list(expected) == list(got):
        return None
    place = next(
        (at for at, (one, other) in enumerate(zip(expected, got, strict=False)) if one != other),
        min(len(expected), len(got)),
    )
    what = f"the tokenizer or the chat template gives other ids, from token {place} on"
    return Mismatch(
        prompt_id, what, _ids(expected, place), f"{_ids(got, place)} of {len(got)} in all"
    )


def _not_finite(prompt_id: str, numbers: Sequence[float]) -> Mismatch | None:
    bad = next((number for number in numbers if not math.isfinite(number)), None)
    if bad is None:
        return None
    return Mismatch(prompt_id, _NO_NUMBERS, "finite numbers", str(bad))


def _ids(ids: Sequence[int], place: int) -> str:
    return str(list(ids[place : place + 4]))


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    product = math.fsum(a * b for a, b in zip(one, other, strict=True))
    length = math.hypot(*one) * math.hypot(*other)
    return product / length if length else 0.0
