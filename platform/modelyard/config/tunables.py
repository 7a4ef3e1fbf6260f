"""Tunables: what `user_config` of a model deployment may change without restarting anything."""

from __future__ import annotations

from pydantic import Field

from modelyard.config.frozen import Frozen


class BatchTunables(Frozen):
    """How a small model gathers requests into one forward pass.

    max_batch_size: inputs a batch. max_batch_tokens: padded tokens a batch. max_wait_ms: how long
    the first input waits for company; 0 is best unless the device is much faster than the callers.
    """

    max_batch_size: int = Field(default=32, ge=1, le=4096)
    max_batch_tokens: int = Field(default=8192, ge=1)
    max_wait_ms: float = Field(default=0, ge=0, le=1000)
