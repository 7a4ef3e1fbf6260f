"""Models for data jobs: the ingress by Ray handle, without HTTP."""

from modelyard.admission.retry_policy import RetryPolicy
from modelyard.client.answers import Chunk, Classes, Embeddings, Generation, Ranking
from modelyard.client.models import Models
from modelyard.client.sync_models import SyncModels

__all__ = [
    "Chunk",
    "Classes",
    "Embeddings",
    "Generation",
    "Models",
    "Ranking",
    "RetryPolicy",
    "SyncModels",
]
