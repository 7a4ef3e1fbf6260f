"""What a generator refuses before its engine sees it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from deployments.generator import Generator
from modelyard.contract.envelope import Envelope
from modelyard.contract.errors import Forbidden, Unauthenticated
from modelyard.tenancy.claim import Claim, sign

SECRET = b"a signing key for tests only: 32+"


def admit(features: tuple[str, ...] | None, operation: str, **body: Any) -> None:
    shell = Generator(None)
    shell._secret = SECRET
    shell.manifest = SimpleNamespace(full_name="gen@1")  # type: ignore[assignment]
    claim = Claim("a", "a-1", "", "", "batch", ("invoke",), ("*",), features=features)
    data = json.dumps(body).encode()
    token = sign(claim, SECRET)
    shell.admit(Envelope(token, "gen@1", operation, data, False, 1000, "batch", "r", "a", "chat"))


def test_a_feature_of_the_claim_passes() -> None:
    admit(("choices",), "chat", n=2)
    admit(None, "chat", n=2, tools=[{}])
    admit((), "generate", messages=[])


@pytest.mark.parametrize(
    ("operation", "body", "param"),
    [
        ("chat", {"n": 2}, "n"),
        ("completions", {"logprobs": 1}, "logprobs"),
        ("responses", {"tools": [{}]}, "tools"),
    ],
)
def test_a_feature_outside_the_claim_is_forbidden(
    operation: str, body: dict[str, Any], param: str
) -> None:
    with pytest.raises(Forbidden) as caught:
        admit(("structured_outputs",), operation, **body)
    assert (caught.value.param, caught.value.reason) == (param, "entitlement")


def test_a_stray_is_refused_before_its_body_is_read() -> None:
    with pytest.raises(Unauthenticated):
        Generator(None).admit("text")  # type: ignore[arg-type]
