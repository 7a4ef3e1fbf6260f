"""From what a version answers when it is packaged to its golden file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from modelyard.artifacts.manifest import Manifest
from modelyard.contract.errors import ArtifactError
from modelyard.lifecycle.golden import Golden, parse_golden_record
from modelyard.lifecycle.observed import (
    Classified,
    Embedded,
    Generated,
    NotFinite,
    Observed,
    Ranked,
)
from modelyard.lifecycle.questions import Question

_DIGITS = 5  # of a recorded number: far below any tolerance, and the file stays short


def golden_of(manifest: Manifest, answered: Sequence[tuple[Question, Observed]]) -> Golden:
    """The golden file of a version. Raises ArtifactError for an answer that is no number."""
    prompts = [
        question.model_dump(mode="json") | _expected(manifest, question.id, observed)
        for question, observed in answered
    ]
    return parse_golden_record({"kind": str(manifest.kind), "prompts": prompts})


def _expected(manifest: Manifest, prompt_id: str, observed: Observed) -> dict[str, Any]:
    match observed:
        case Generated():
            chosen = zip(observed.token_ids, observed.logprobs, strict=True)
            return {
                "prompt_token_ids": observed.prompt_token_ids,
                "expected_token_ids": observed.token_ids,
                "expected_text": observed.text,
                "logprobs": _rounded(manifest, prompt_id, [row[token] for token, row in chosen]),
            }
        case Embedded():
            expected = _rounded(manifest, prompt_id, observed.vector)
            return {"token_ids": observed.token_ids, "expected": expected}
        case Classified():
            numbers = _rounded(manifest, prompt_id, list(observed.probabilities.values()))
            labels = dict(zip(observed.probabilities, numbers, strict=True))
            return {"token_ids": observed.token_ids, "expected": labels}
        case Ranked():
            expected = _rounded(manifest, prompt_id, observed.scores)
            return {"token_ids": observed.token_ids, "expected": expected}
        case NotFinite():
            raise _no_numbers(manifest, prompt_id)


def _rounded(manifest: Manifest, prompt_id: str, numbers: Sequence[float]) -> list[float]:
    if not all(map(math.isfinite, numbers)):
        raise _no_numbers(manifest, prompt_id)
    return [round(number, _DIGITS) for number in numbers]


def _no_numbers(manifest: Manifest, prompt_id: str) -> ArtifactError:
    return ArtifactError(
        f"{manifest.full_name} computes no finite numbers for the prompt {prompt_id}: its weights "
        f"are damaged, or {manifest.runtime.dtype} is too narrow for it"
    )
