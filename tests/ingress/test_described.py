"""Requests that schemathesis makes from our OpenAPI description, right ones and wrong ones.

What comes back must be what the description says (status, media type, headers, shape), and a body
that breaks the description must be refused without a replica being asked.
"""

from __future__ import annotations

from typing import Any, Final

import hypothesis
import schemathesis
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.specs.openapi.checks import ignored_auth, positive_data_acceptance

from modelyard.contract.operations import Operation
from modelyard.ingress.app import ROUTES
from modelyard.ingress.openapi import document
from modelyard.testing.answering_transport import AnsweringTransport
from modelyard.testing.in_memory import ALPHA_KEY, InMemoryIngress, bearer

load_all_checks()

ALIASES: Final = {
    Operation.EMBED: "team/embed",
    Operation.CLASSIFY: "intent",
    Operation.RERANK: "rerank",
    Operation.SCORE: "rerank",
}
EXCLUDED: Final = [
    ignored_auth,  # it sends no key, or a wrong one, and ours is put in
    not_a_server_error,  # asserted here, with deadlines
    positive_data_acceptance,  # a schema cannot say that one field must suit another
]
TRANSPORT: Final = AnsweringTransport()
APP: Final = InMemoryIngress(transport=TRANSPORT).app


def of_this_ingress(record: dict[str, Any]) -> dict[str, Any]:
    """The description with the models that exist, or every request would end at a 404."""
    for path, operation in ROUTES:
        body = record["paths"][path]["post"]["requestBody"]
        properties = body["content"]["application/json"]["schema"]["properties"]
        properties["model"] = {"const": ALIASES.get(operation, "chat")}
    return record


schema = schemathesis.openapi.from_dict(of_this_ingress(document(APP)))
schema.app = APP


@schema.parametrize()
@hypothesis.settings(max_examples=20)
def test_every_answer_is_as_described_and_what_breaks_the_description_is_refused(
    case: schemathesis.Case[Any],
) -> None:
    asked = len(TRANSPORT.calls)
    answer = case.call(headers=bearer(ALPHA_KEY))
    assert answer.status_code < 500 or answer.status_code == 504  # a deadline may be this short
    assert (len(TRANSPORT.calls) > asked) == (answer.status_code == 200 and case.method == "POST")
    case.validate_response(answer, excluded_checks=EXCLUDED, headers=bearer(ALPHA_KEY))
