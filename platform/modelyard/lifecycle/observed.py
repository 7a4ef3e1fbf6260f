"""What a replica answered to a golden question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Generated:
    """logprobs: in nats, for each token those of the likeliest at its place by token id, the
    chosen one among them."""

    prompt_token_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    text: str
    logprobs: tuple[Mapping[int, float], ...]


@dataclass(frozen=True, slots=True)
class Embedded:
    token_ids: tuple[int, ...]
    vector: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Classified:
    token_ids: tuple[int, ...]
    probabilities: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Ranked:
    """token_ids: of each input of the model. scores: in the order of the documents."""

    token_ids: tuple[tuple[int, ...], ...]
    scores: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class NotFinite:
    """The model computed no numbers, and its own answer path says so. got: its words."""

    got: str


Observed = Generated | Embedded | Classified | Ranked | NotFinite
