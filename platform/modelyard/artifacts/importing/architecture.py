"""What config.json says a model is, and which of our shells can run it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from modelyard.artifacts.json_file import read_object
from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind

# `model_type`s that batching/encode.py runs: input_ids and attention_mask in, one hidden state a
# token out, absolute positions or a stated bound. A test loads a small one of each.
ENCODERS: Final = frozenset(
    {
        "albert",
        "bert",
        "camembert",
        "deberta-v2",
        "distilbert",
        "electra",
        "modernbert",
        "mpnet",
        "roberta",
        "xlm-roberta",
    }
)
_GENERATOR_ENDINGS: Final = ("ForCausalLM", "LMHeadModel")
_CLASSIFIER_ENDING: Final = "ForSequenceClassification"
# A damaged number is not counted up to.
_MOST_LABELS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Architecture:
    """config.json of one model. `where` is how an error calls it."""

    record: Mapping[str, Any]
    where: str

    @property
    def architecture(self) -> str:
        """The class that loads it. Raises ArtifactError when there is none."""
        names = self.record.get("architectures")
        if not isinstance(names, list) or not names or not isinstance(names[0], str):
            raise ArtifactError(
                f"{self.where}: config.json names no architectures: write a list of the class that "
                'loads it, e.g. "architectures": ["LlamaForCausalLM"]'
            )
        return names[0]

    @property
    def model_type(self) -> str:
        return str(self.record.get("model_type", ""))

    @property
    def labels(self) -> tuple[str, ...]:
        """Of the head, in its order; transformers' two when config.json names none.

        Raises ArtifactError for an id2label or a num_labels that is neither names nor a number.
        """
        names = self.record.get("id2label")
        if not names:
            return tuple(f"LABEL_{index}" for index in range(self._label_count()))
        rows = [str(row) for row in range(len(names))] if isinstance(names, dict) else []
        if not isinstance(names, dict) or names.keys() != set(rows):
            raise ArtifactError(
                f"{self.where}: config.json: id2label: expected an object that names each label by "
                'its row in the head, e.g. {"0": "refund", "1": "order"}: write it so'
            )
        return tuple(str(names[row]) for row in rows)

    def _label_count(self) -> int:
        count = self.record.get("num_labels", 2)
        if isinstance(count, bool) or not isinstance(count, int) or not 0 < count <= _MOST_LABELS:
            raise ArtifactError(
                f"{self.where}: config.json: num_labels: expected a number from 1 to "
                f"{_MOST_LABELS}, got {count!r}: write how many labels the head has"
            )
        return count

    def kind(self, *, sentence_model: bool) -> Kind:
        """The kind that its class has a head for. sentence_model: modules.json lies beside it.

        Raises ArtifactError when the class does not tell.
        """
        name = self.architecture
        if name.endswith(_GENERATOR_ENDINGS):
            return Kind.GENERATOR
        if name.endswith(_CLASSIFIER_ENDING):
            return Kind.CLASSIFIER if len(self.labels) > 1 else Kind.RERANKER
        if sentence_model or (name.endswith("Model") and self.model_type in ENCODERS):
            return Kind.EMBEDDER
        raise ArtifactError(
            f"{self.where}: {name} does not tell what it is served as: say --kind, one of "
            f"{', '.join(Kind)}"
        )

    def require_servable(self, kind: Kind, *, cross_encoder: bool) -> None:
        """Raise ArtifactError where no shell of `kind` can run it. cross_encoder: of a reranker."""
        name = self.architecture
        if kind is Kind.GENERATOR:
            if not name.endswith(_GENERATOR_ENDINGS):
                raise ArtifactError(
                    f"{self.where}: {name} has no head that writes text: a generator is a "
                    "...ForCausalLM"
                )
            return
        if self.model_type not in ENCODERS:
            raise ArtifactError(
                f"{self.where}: no {kind}'s shell runs {name} (model_type "
                f"{self.model_type!r}): the small models' are {', '.join(sorted(ENCODERS))}"
            )
        if (kind is Kind.CLASSIFIER or cross_encoder) and not name.endswith(_CLASSIFIER_ENDING):
            what = "a cross-encoder" if cross_encoder else "a classifier"
            raise ArtifactError(
                f"{self.where}: {name} has no classification head, and {what} needs a "
                "...ForSequenceClassification: fine-tune one, or choose another --kind or "
                "--score-kind"
            )
        if cross_encoder and len(self.labels) != 1:
            raise ArtifactError(
                f"{self.where}: its head has {len(self.labels)} labels, and a cross-encoder has "
                "one: choose --kind classifier"
            )


def read_config(folder: Path, where: str | None = None) -> Architecture:
    """Raises ArtifactError for a config.json that is missing or no JSON object."""
    return Architecture(read_object(folder / "config.json"), where or str(folder))
