"""Golden answers: what the model says here, for a person to look at and for replicas to repeat."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from operator import mul
from pathlib import Path
from typing import Final

from modelyard.contract.errors import ArtifactError
from modelyard.lifecycle.golden import (
    ClassifierPrompt,
    EmbedderPrompt,
    GeneratorPrompt,
    GoldenPrompt,
    RerankerPrompt,
    read_golden,
)

_LAST_LINES: Final = 5


def record(folder: Path, prompts: Path | None = None) -> None:
    """Write `folder`/golden.json by `python -m deployments.record`, which loads the model as a
    replica does.

    A process of its own: the engine's memory is free again afterwards. Raises ArtifactError with
    its last lines when it fails.
    """
    command = [sys.executable, "-m", "deployments.record", str(folder)]
    if prompts is not None:
        command += ["--prompts", str(prompts)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-_LAST_LINES:])
        raise ArtifactError(
            f"the golden answers could not be recorded (exit code {done.returncode}): repair what "
            f"it says, or import with --no-golden, and replicas serve without a self-test:\n"
            f"{last}"
        )


def answer_lines(folder: Path) -> Iterator[str]:
    """One line for each recorded prompt. Only a person can say whether the answers are right."""
    prompts = read_golden(folder).prompts
    for prompt in prompts:
        yield f"  {prompt.id}: {_asked(prompt)!r} -> {_answered(prompt, prompts)}"


def _asked(prompt: GoldenPrompt) -> str:
    if isinstance(prompt, GeneratorPrompt):
        return prompt.messages[-1].content
    return prompt.query if isinstance(prompt, RerankerPrompt) else prompt.text


def _answered(prompt: GoldenPrompt, among: Sequence[GoldenPrompt]) -> str:
    if isinstance(prompt, GeneratorPrompt):
        return repr(prompt.expected_text)
    if isinstance(prompt, EmbedderPrompt):
        return f"{len(prompt.expected)} dimensions, {_likeness(prompt, among)}"
    if isinstance(prompt, ClassifierPrompt):
        best = max(prompt.expected, key=lambda label: prompt.expected[label])
        return f"{best} {prompt.expected[best]:.3f}"
    return _scores(prompt)


def _likeness(prompt: EmbedderPrompt, among: Sequence[GoldenPrompt]) -> str:
    """Nobody can judge a vector, but everybody which of the other texts is nearest in meaning.

    The vectors are of unit length, so the product is the cosine.
    """
    cosines = ", ".join(
        f"{sum(map(mul, prompt.expected, other.expected)):.2f} to {other.id}"
        for other in among
        if isinstance(other, EmbedderPrompt) and other.id != prompt.id
    )
    return f"cosine {cosines}" if cosines else "no other text to compare it with"


def _scores(prompt: RerankerPrompt) -> str:
    return "; ".join(
        f"{score:.3f} {document!r}"
        for document, score in zip(prompt.documents, prompt.expected, strict=True)
    )
