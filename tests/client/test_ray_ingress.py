"""What Ray says of a call to the ingress, in our words. The calls themselves: tests/integration."""

from __future__ import annotations

import pytest
import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayTaskError
from ray.serve._private.common import DeploymentID
from ray.serve.exceptions import (
    BackPressureError,
    DeploymentUnavailableError,
    RayServeException,
    RequestCancelledError,
)

from modelyard.client.ingress import RayIngress, from_ray
from modelyard.contract.errors import ConfigError

UNKNOWN = RayTaskError("ask", "a traceback", ValueError("a bug"))  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        (ActorDiedError(), "replica_failed", True),
        (ActorUnavailableError("gone", b"0" * 16), "replica_failed", True),
        (BackPressureError(1, 1), "overloaded", True),
        (DeploymentUnavailableError(DeploymentID("Ingress", "ingress")), "overloaded", True),
        (RequestCancelledError("r-1"), "internal", False),
        (RayServeException("there is no Serve here"), "internal", False),
        (UNKNOWN, "internal", False),
    ],
)
def test_what_ray_says_has_a_code_and_says_whether_to_retry(
    error: Exception, code: str, retryable: bool
) -> None:
    ours = from_ray(error)
    assert (ours.code, ours.retryable) == (code, retryable)


async def test_a_job_that_has_not_joined_is_told_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(ConfigError, match="join the platform"):
        await RayIngress().ask("my_key", "classify", b"{}", {})
