from typing import Any

import pytest

from modelyard.contract.errors import InvalidRequest
from modelyard.contract.openai import Fields, filter_fields
from modelyard.contract.operations import Operation
from modelyard.contract.responses import MAX_METADATA, STATE

BODY: dict[str, Any] = {"model": "m", "input": "hello"}
TOOL: dict[str, Any] = {
    "type": "function",
    "name": "f",
    "description": "does",
    "parameters": {"type": "object"},
    "strict": True,
}
NO_PARAMETERS = {"type": "object", "properties": {}}


def filtered(**changes: Any) -> Fields:
    return filter_fields(Operation.RESPONSES, BODY | changes)


def refused(**changes: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        filtered(**changes)
    return caught.value


def test_the_smallest_body_passes() -> None:
    assert filtered() == Fields({"input": "hello"}, (), False, None, "max_output_tokens")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("store", True),
        ("store", 1),
        ("background", True),
        ("previous_response_id", "resp_1"),
        ("conversation", "conv_1"),
        ("prompt", {"id": "p"}),
        ("truncation", "auto"),
    ],
)
def test_what_needs_a_memory_is_unsupported_and_never_ignored(name: str, value: Any) -> None:
    error = refused(**{name: value})
    assert (error.status, error.param, error.wire_code) == (400, name, "unsupported")
    assert error.reason == "unsupported"


def test_a_client_may_say_that_it_wants_no_memory() -> None:
    said = dict.fromkeys(STATE) | {"store": False, "background": False, "truncation": "disabled"}
    assert filtered(**said) == filtered()


def test_fields_that_no_engine_reads_are_ignored_and_named() -> None:
    fields = filtered(reasoning={"effort": "low"}, max_tokens=4, safety_identifier="u", user="u")
    assert fields.ignored == ("max_tokens", "reasoning", "safety_identifier")
    assert fields.passed == {"input": "hello"}


def test_a_tool_passes_with_what_the_engine_wants_of_it() -> None:
    bare = {"type": "function", "name": "f", "cache_control": {}}
    assert filtered(tools=[TOOL, bare]).passed["tools"] == [
        TOOL,
        {"type": "function", "name": "f", "parameters": NO_PARAMETERS, "strict": None},
    ]
    nothing: list[Any] = [{}, None]
    for empty in nothing:
        tool = filtered(tools=[bare | {"parameters": empty}]).passed["tools"][0]
        assert tool["parameters"] == NO_PARAMETERS


@pytest.mark.parametrize("kind", ["web_search", "code_interpreter", "mcp", "custom", None])
def test_tools_that_the_platform_would_have_to_run_are_unsupported(kind: str | None) -> None:
    error = refused(tools=[TOOL | {"type": kind}])
    assert (error.param, error.wire_code) == ("tools", "unsupported")


def test_a_tool_without_a_name_is_refused() -> None:
    assert refused(tools=[{"type": "function"}]).param == "tools[0].name"


@pytest.mark.parametrize("choice", ["none", "auto", "required", {"type": "function", "name": "f"}])
def test_every_choice_of_tools_passes(choice: Any) -> None:
    assert filtered(tools=[TOOL], tool_choice=choice).passed["tool_choice"] == choice


@pytest.mark.parametrize(
    "choice",
    [
        "maybe",
        7,
        {},
        {"type": "mcp", "name": "f"},
        {"type": "function", "function": {"name": "f"}},
        {"type": "function", "name": "f", "x": 1},
    ],
)
def test_another_choice_of_tools_is_refused(choice: Any) -> None:
    assert refused(tools=[TOOL], tool_choice=choice).param == "tool_choice"


def test_only_the_format_of_the_text_is_passed() -> None:
    form = {"type": "json_schema", "name": "x", "schema": {"type": "object"}}
    text = {"format": form, "verbosity": "low"}
    assert filtered(text=text).passed["text"] == {"format": form}
    assert "text" not in filtered(text={"verbosity": "low"}).passed
    assert refused(text="plain").param == "text"


def test_the_schema_of_a_text_is_bounded_as_a_response_format_is() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(40):
        schema = {"type": "object", "properties": {"a": schema}}
    error = refused(text={"format": {"type": "json_schema", "name": "x", "schema": schema}})
    assert error.param == "text"


def test_log_probabilities_are_included_and_encrypted_reasoning_is_not() -> None:
    both = ["reasoning.encrypted_content", "message.output_text.logprobs"]
    assert filtered(include=both).passed["include"] == ["message.output_text.logprobs"]
    for wrong in ("all", ["file_search_call.results"], [7]):
        assert refused(include=wrong).param == "include"


def test_metadata_is_bounded() -> None:
    assert filtered(metadata={"a": "b"}).passed["metadata"] == {"a": "b"}
    many = {str(number): "" for number in range(MAX_METADATA + 1)}
    for wrong in ("a", {"a": 1}, {"a": "b" * 512}, many):
        assert refused(metadata=wrong).param == "metadata"


def test_instructions_are_text() -> None:
    assert filtered(instructions="be kind").passed["instructions"] == "be kind"
    assert refused(instructions=["be kind"]).param == "instructions"
