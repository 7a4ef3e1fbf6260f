"""A few requests a route that schemathesis makes from the OpenAPI description, at real models."""

from __future__ import annotations

from typing import Any, Final

import hypothesis
import pytest
import schemathesis
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    ignored_auth,
    negative_data_rejection,
    positive_data_acceptance,
)

from modelyard.config.demo import DEMO_KEY
from modelyard.contract.operations import Operation
from modelyard.ingress.app import ROUTES
from modelyard.ingress.openapi import document
from modelyard.testing.in_memory import InMemoryIngress, bearer

pytestmark = pytest.mark.integration
load_all_checks()

ALIASES: Final = {
    Operation.EMBED: "support-embed",
    Operation.CLASSIFY: "support-intent",
    Operation.RERANK: "support-rerank",
    Operation.SCORE: "support-rerank",
}
CAPS: Final = {
    Operation.GENERATE: "max_output_tokens",
    Operation.CHAT: "max_completion_tokens",  # counts before max_tokens
    Operation.COMPLETIONS: "max_tokens",
    Operation.RESPONSES: "max_output_tokens",
}


FEW_TOKENS: Final = 4


def of_this_platform(record: dict[str, Any]) -> dict[str, Any]:
    """The description with the models that exist, and answers of a few tokens."""
    for path, operation in ROUTES:
        body = record["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        properties = body["properties"]
        properties["model"] = {"const": ALIASES.get(operation, "support-assistant")}
        if cap := CAPS.get(operation):
            properties[cap] = {"type": "integer", "minimum": 1, "maximum": FEW_TOKENS}
            body["required"] = sorted({*body["required"], cap})
    return record


def is_only_longer(body: Any) -> bool:
    """It breaks the bound that this test has put in, not one of the platform's."""
    caps = [body.get(cap) for cap in CAPS.values()] if isinstance(body, dict) else []
    return any(isinstance(cap, int) and cap > FEW_TOKENS for cap in caps)


# The coverage phase asks hundreds of times a route: tests/ingress does that, without a model.
CONFIG: Final = SchemathesisConfig.from_dict({"phases": {"coverage": {"enabled": False}}})
schema = schemathesis.openapi.from_dict(
    of_this_platform(document(InMemoryIngress().app)), config=CONFIG
)


@schema.parametrize()
@hypothesis.settings(
    max_examples=8, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
def test_the_platform_answers_as_it_is_described(
    case: schemathesis.Case[Any], platform: Any
) -> None:
    answer = case.call(base_url=platform.url, headers=bearer(DEMO_KEY), timeout=60)
    assert answer.status_code < 500 or answer.status_code == 504, answer.text[:300]
    excluded = [ignored_auth, not_a_server_error, positive_data_acceptance]
    if is_only_longer(case.body):
        excluded.append(negative_data_rejection)
    case.validate_response(answer, excluded_checks=excluded, headers=bearer(DEMO_KEY))
