"""The Serve apps that modelyard ships: what each import path takes, and its deployment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from modelyard.config.frozen import Frozen
from modelyard.config.model_args import ControlArgs, GeneratorArgs, NoArgs, SmallModelArgs
from modelyard.config.tunables import BatchTunables
from modelyard.contract.operations import Kind

INGRESS: Final = "deployments.ingress:app"
CONTROL: Final = "deployments.control:app"


@dataclass(frozen=True, slots=True)
class Shell:
    """kind: None for an app without a model.

    tunables: what user_config of a model holds, None for a model without any and for ingress and
    control, whose user_config is the table.
    """

    deployment: str
    kind: Kind | None
    args: type[Frozen]
    tunables: type[Frozen] | None


SHELLS: Final[dict[str, Shell]] = {
    INGRESS: Shell("Ingress", None, NoArgs, None),
    CONTROL: Shell("Control", None, ControlArgs, None),
    "deployments.generator:app": Shell("Generator", Kind.GENERATOR, GeneratorArgs, None),
    "deployments.embedder:app": Shell("Embedder", Kind.EMBEDDER, SmallModelArgs, BatchTunables),
    "deployments.classifier:app": Shell(
        "Classifier", Kind.CLASSIFIER, SmallModelArgs, BatchTunables
    ),
    "deployments.reranker:app": Shell("Reranker", Kind.RERANKER, SmallModelArgs, BatchTunables),
}
