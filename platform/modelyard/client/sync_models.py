"""SyncModels: Models for code without an event loop."""

from __future__ import annotations

from modelyard.admission.retry_policy import RetryPolicy
from modelyard.client.background import blocking, blocking_stream
from modelyard.client.ingress import Ingress
from modelyard.client.models import Models


class SyncModels:
    """The methods of Models, each waiting for its answer; `stream` is an ordinary generator.

    Threads may share it: max_in_flight bounds them together. Arguments, answers and errors are
    those of Models, which does the work on a loop in a thread of its own.
    """

    def __init__(
        self,
        key: str,
        *,
        max_in_flight: int = 16,
        deadline_s: float = 120.0,
        retry: RetryPolicy | None = None,
        ingress: Ingress | None = None,
    ) -> None:
        models = Models(
            key,
            max_in_flight=max_in_flight,
            deadline_s=deadline_s,
            retry=retry,
            ingress=ingress,
        )
        self.generate = blocking(models.generate)
        self.stream = blocking_stream(models.stream)
        self.embed = blocking(models.embed)
        self.classify = blocking(models.classify)
        self.rerank = blocking(models.rerank)
