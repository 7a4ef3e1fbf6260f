"""Requests to the small models."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from modelyard.contract.small import (
    MAX_INPUTS,
    ClassifyRequest,
    EmbeddingsRequest,
    RerankRequest,
    ScoreRequest,
)

RERANK = {"query": "q", "documents": ["a", "b"]}
WRONG_INPUT = "must be text, a list of texts, token ids, or a list of token ids"


def parse(model: type[BaseModel], /, **fields: Any) -> Any:
    return model.model_validate_json(json.dumps({"model": "m"} | fields))


def fault(model: type[BaseModel], /, **fields: Any) -> tuple[tuple[str | int, ...], str]:
    """Where, and what, a wrong request is told. Always one fault: nobody reads a union's list."""
    with pytest.raises(ValidationError) as caught:
        parse(model, **fields)
    (only,) = caught.value.errors()
    return only["loc"], only["msg"].removeprefix("Value error, ")


@pytest.mark.parametrize(
    ("given", "texts", "token_ids"),
    [
        ("a", ["a"], []),
        (["a", "b"], ["a", "b"], []),
        ([1, 2], None, [[1, 2]]),
        ([[1, 2], [3]], None, [[1, 2], [3]]),
    ],
)
def test_each_form_of_input_is_read(
    given: Any, texts: list[str] | None, token_ids: list[list[int]]
) -> None:
    request = parse(EmbeddingsRequest, input=given)
    assert (request.texts, request.token_ids) == (texts, token_ids)


@pytest.mark.parametrize(
    "wrong", [5, 1.5, True, {}, ["a", 1], [True], [1.0], [["a"]], [[1], "a"], [[1], [-1]], [None]]
)
def test_an_input_of_a_wrong_type_is_told_in_one_sentence(wrong: Any) -> None:
    assert fault(EmbeddingsRequest, input=wrong) == (("input",), WRONG_INPUT)


@pytest.mark.parametrize("empty", ["", [], [""], ["a", ""], [[]]])
def test_an_empty_input_is_refused_as_openai_does(empty: Any) -> None:
    where, what = fault(EmbeddingsRequest, input=empty)
    assert where == ("input",)
    assert "empty" in what


def test_the_number_of_inputs_is_bounded_but_not_the_length_of_one() -> None:
    parse(EmbeddingsRequest, input=["a"] * MAX_INPUTS)
    parse(EmbeddingsRequest, input=[1] * (MAX_INPUTS + 1))  # one input: the model's limit decides
    assert "2049 inputs" in fault(EmbeddingsRequest, input=["a"] * (MAX_INPUTS + 1))[1]
    assert "2049 texts" in fault(ClassifyRequest, input=["a"] * (MAX_INPUTS + 1))[1]
    assert "2049 texts" in fault(RerankRequest, query="q", documents=["a"] * (MAX_INPUTS + 1))[1]


def test_token_ids_are_bounded_in_all_and_in_size() -> None:
    parse(EmbeddingsRequest, input=[[1] * 64] * 2000)
    where, what = fault(EmbeddingsRequest, input=[[1] * 65] * 2048)
    assert (where, "131072 token ids" in what) == (("input",), True)
    assert "131072 token ids" in fault(EmbeddingsRequest, input=[1] * 131_073)[1]
    assert fault(EmbeddingsRequest, input=[2**31])[1] == WRONG_INPUT


def test_a_list_without_documents_is_called_empty() -> None:
    assert "is empty" in fault(RerankRequest, query="q", documents=[])[1]


def test_too_many_documents_are_counted_before_they_are_read() -> None:
    assert "2049 texts" in fault(RerankRequest, query="q", documents=[None] * 2049)[1]


def test_the_two_ways_of_reading_agree() -> None:
    """The ingress validates a dict, a job the JSON: no type may pass in one way only."""
    record = {"model": "m", "input": [[1, 2]], "encoding_format": "base64", "dimensions": 3}
    again = EmbeddingsRequest.model_validate_json(json.dumps(record))
    assert EmbeddingsRequest.model_validate(record) == again
    for odd in ((1, 2), ("a",), {1}, b"a"):
        with pytest.raises(ValidationError):
            EmbeddingsRequest.model_validate({"model": "m", "input": odd})


def test_null_equals_absent_and_unknown_fields_are_ignored() -> None:
    request = parse(EmbeddingsRequest, input="a", encoding_format=None, dimensions=None, other=1)
    assert request == parse(EmbeddingsRequest, input="a")
    assert request.encoding_format == "float"


def test_null_for_a_required_field_is_a_missing_field() -> None:
    assert fault(EmbeddingsRequest, input=None) == (("input",), "Field required")


@pytest.mark.parametrize(
    "fields",
    [
        {"dimensions": 0},
        {"dimensions": "64"},
        {"dimensions": True},
        {"encoding_format": "hex"},
        {"truncate_prompt_tokens": 0},
        {"truncate_prompt_tokens": -2},
        {"truncate_prompt_tokens": 8.0},
        {"user": 7},
        {"model": ""},
    ],
)
def test_fields_are_strict(fields: dict[str, Any]) -> None:
    assert fault(EmbeddingsRequest, **({"input": "a"} | fields))[0] == (next(iter(fields)),)


def test_documents_are_strings_or_objects_with_text() -> None:
    request = parse(RerankRequest, query="q", documents=["a", {"text": "b", "title": "t"}])
    assert request.documents == ["a", "b"]


@pytest.mark.parametrize("wrong", [[1], [{"title": "t"}], [{"text": 1}], [["a"]], [None]])
def test_a_document_without_text_is_told_by_its_index(wrong: list[Any]) -> None:
    where, what = fault(RerankRequest, query="q", documents=["a", *wrong])
    assert where == ("documents",)
    assert what.startswith("item 1 must be text")


@pytest.mark.parametrize(
    "fields",
    [
        {"query": ""},
        {"query": ["q"]},
        {"documents": []},
        {"documents": "a"},
        {"top_n": -1},
        {"top_n": 1.0},
        {"return_documents": "yes"},
        {"max_tokens_per_doc": 0},
    ],
)
def test_rerank_fields_are_strict(fields: dict[str, Any]) -> None:
    assert fault(RerankRequest, **(RERANK | fields))[0] == (next(iter(fields)),)


def test_return_documents_is_left_to_the_route_when_unsaid() -> None:
    assert parse(RerankRequest, **RERANK, top_n=None).return_documents is None
    assert parse(RerankRequest, **RERANK, return_documents=False).return_documents is False


@pytest.mark.parametrize("fields", [("text_1", "text_2"), ("queries", "documents")])
def test_score_takes_either_pair_of_fields(fields: tuple[str, str]) -> None:
    request = parse(ScoreRequest, **{fields[0]: "q", fields[1]: ["a", "b"]})
    assert (request.fields, request.left, request.right) == (fields, ["q"], ["a", "b"])


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"text_1": "a"},
        {"text_1": "a", "documents": "b"},
        {"text_1": "a", "text_2": "b", "queries": "c"},
        {"text_1": ["a", "b"], "text_2": ["c"]},
        {"text_1": ["a", "b"], "text_2": ["c", "d", "e"]},
    ],
)
def test_score_refuses_what_does_not_pair(fields: dict[str, Any]) -> None:
    assert fault(ScoreRequest, **fields)[1].endswith(("documents", "N to N"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


@settings(deadline=None)
@given(JSON)
def test_whatever_is_sent_as_input_is_read_or_refused(value: Any) -> None:
    body = json.dumps({"model": "m", "input": value})
    try:
        request = EmbeddingsRequest.model_validate_json(body)
    except ValidationError:
        return
    assert bool(request.texts) != bool(request.token_ids)
    # The ingress writes the validated request again, and the shell reads it.
    assert EmbeddingsRequest.model_validate_json(request.model_dump_json()) == request
