from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.contract.errors import Forbidden
from modelyard.contract.features import features_of, require_features
from modelyard.contract.operations import Operation

CHAT, COMPLETIONS, RESPONSES = Operation.CHAT, Operation.COMPLETIONS, Operation.RESPONSES
EVERYTHING = {"tools": [1], "structured_outputs": {}, "logprobs": True, "n": 5}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
FIELDS = ["tools", "response_format", "structured_outputs", "text", "logprobs", "top_logprobs"]


@pytest.mark.parametrize(
    ("operation", "body", "expected"),
    [
        (CHAT, {}, {}),
        (CHAT, {"tools": [{}]}, {"tools": "tools"}),
        (RESPONSES, {"tools": [{}]}, {"tools": "tools"}),
        (CHAT, {"tools": []}, {}),
        (CHAT, {"tools": None, "n": None, "logprobs": None, "response_format": None}, {}),
        (CHAT, {"response_format": {"type": "text"}}, {}),
        (
            CHAT,
            {"response_format": {"type": "json_object"}},
            {"structured_outputs": "response_format"},
        ),
        (
            COMPLETIONS,
            {"structured_outputs": {"regex": "a"}},
            {"structured_outputs": "structured_outputs"},
        ),
        (RESPONSES, {"text": {"format": {"type": "text"}}}, {}),
        (RESPONSES, {"text": {"verbosity": "low"}}, {}),
        (
            RESPONSES,
            {"text": {"format": {"type": "json_schema"}}},
            {"structured_outputs": "text.format"},
        ),
        (CHAT, {"logprobs": True}, {"logprobs": "logprobs"}),
        (CHAT, {"logprobs": False}, {}),
        (CHAT, {"logprobs": True, "top_logprobs": 3}, {"logprobs": "logprobs"}),
        (COMPLETIONS, {"logprobs": 0}, {"logprobs": "logprobs"}),
        (COMPLETIONS, {"logprobs": 3}, {"logprobs": "logprobs"}),
        (CHAT, {"logprobs": 0}, {}),
        (RESPONSES, {"top_logprobs": 2}, {"logprobs": "top_logprobs"}),
        (RESPONSES, {"include": ["message.output_text.logprobs"]}, {"logprobs": "include"}),
        (RESPONSES, {"include": ["reasoning.encrypted_content"]}, {}),
        (CHAT, {"n": 1}, {}),
        (CHAT, {"n": True}, {}),
        (COMPLETIONS, {"n": 2, "tools": [1]}, {"choices": "n", "tools": "tools"}),
    ],
    ids=str,
)
def test_a_feature_is_known_by_its_fields(
    operation: Operation, body: dict[str, Any], expected: dict[str, str]
) -> None:
    assert features_of(operation, body) == expected


@pytest.mark.parametrize("operation", set(Operation) - {CHAT, COMPLETIONS, RESPONSES})
def test_native_requests_and_small_models_have_no_features(operation: Operation) -> None:
    assert features_of(operation, EVERYTHING) == {}


def test_a_feature_that_a_tenant_lacks_is_forbidden_with_its_field() -> None:
    require_features(None, CHAT, EVERYTHING)
    require_features(("tools", "structured_outputs", "logprobs", "choices"), CHAT, EVERYTHING)
    with pytest.raises(Forbidden, match="may not use choices") as caught:
        require_features(("tools", "structured_outputs", "logprobs"), CHAT, EVERYTHING)
    assert (caught.value.param, caught.value.reason) == ("n", "entitlement")
    with pytest.raises(Forbidden):
        require_features((), RESPONSES, {"tools": [{}]})


@given(operation=st.sampled_from(Operation), body=st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_no_body_breaks_the_look_for_features(operation: Operation, body: dict[str, Any]) -> None:
    assert set(features_of(operation, body).values()) <= {*FIELDS, "text.format"}
