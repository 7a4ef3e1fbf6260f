"""What a model is served as, and whether anything here can serve it so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from modelyard.artifacts.importing.architecture import Architecture, read_config
from modelyard.artifacts.importing.author import Author
from modelyard.artifacts.importing.pooling import require_mean_pooling
from modelyard.artifacts.manifest import ScoreKind
from modelyard.artifacts.tokenizer_files import read_template
from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind


@dataclass(frozen=True, slots=True)
class Role:
    """What a model is served as."""

    kind: Kind
    score_kind: ScoreKind | None


def role_of(folder: Path, author: Author, engine_runs: Callable[[str], bool], where: str) -> Role:
    """The kind, asked for or found. Reads the small files only.

    engine_runs: does vLLM know this architecture. Raises ArtifactError for what no shell can run.
    """
    config = read_config(folder, where)
    sentence_model = (folder / "modules.json").is_file()
    kind = author.kind or config.kind(sentence_model=sentence_model)
    score_kind = _score_kind(author, kind, config)
    config.require_servable(kind, cross_encoder=score_kind == "cross-encoder")
    if kind is Kind.GENERATOR:
        if not engine_runs(config.architecture):
            raise ArtifactError(
                f"{where}: the vLLM that is installed here does not run {config.architecture}: "
                "install a release that does, or choose another model"
            )
        if read_template(folder) is None:
            raise ArtifactError(
                f"{where}: no chat template, so a conversation cannot be put to it (a base model?):"
                " import its instruct version, or write chat_template.jinja beside its weights"
            )
    elif sentence_model and score_kind != "cross-encoder" and kind is not Kind.CLASSIFIER:
        require_mean_pooling(folder, where)
    return Role(kind, score_kind)


def _score_kind(author: Author, kind: Kind, config: Architecture) -> ScoreKind | None:
    if kind is not Kind.RERANKER:
        return author.score_kind  # refused by Identity, which says why
    has_head = config.architecture.endswith("ForSequenceClassification")
    return author.score_kind or ("cross-encoder" if has_head else "bi-encoder")
