import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.config.routes import Deadlines, RouteLimits
from modelyard.contract.errors import InvalidRequest
from modelyard.contract.operations import Kind, Operation
from modelyard.ingress.work import Work, alias_of, deadline_s, lowered, make_work
from modelyard.testing.in_memory import description

LIMITS = RouteLimits(max_output_tokens=400, default_max_output_tokens=100)
GENERATOR = description("gen@1.0.0", Kind.GENERATOR)
BODIES: dict[Operation, dict[str, Any]] = {
    Operation.GENERATE: {
        "model": "m",
        "conversation_id": "c",
        "messages": [{"role": "user", "content": "hello"}],
        "max_output_tokens": 50,
    },
    Operation.CHAT: {"model": "m", "messages": [{"role": "user", "content": "hello"}]},
    Operation.COMPLETIONS: {"model": "m", "prompt": "hello"},
    Operation.RESPONSES: {"model": "m", "input": "hello"},
    Operation.EMBED: {"model": "m", "input": "hello"},
    Operation.CLASSIFY: {"model": "m", "input": "hello"},
    Operation.RERANK: {"model": "m", "query": "hello", "documents": ["a", {"text": "b"}]},
    Operation.SCORE: {"model": "m", "text_1": "hello", "text_2": ["a", "b"]},
}
SMALL = [Operation.EMBED, Operation.CLASSIFY, Operation.RERANK, Operation.SCORE]


def work(operation: Operation, limits: RouteLimits = LIMITS, **changes: Any) -> Work:
    return make_work(operation, BODIES[operation] | changes, limits, GENERATOR)


def sent(made: Work) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(made.encoded)
    return record


def refused(operation: Operation, **changes: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        work(operation, **changes)
    return caught.value


@pytest.mark.parametrize("operation", Operation)
def test_the_smallest_body_of_each_operation_is_work(operation: Operation) -> None:
    made = work(operation)
    assert not made.stream
    assert made.ignored == ()
    assert made.choices == 1
    assert json.loads(made.encoded)


@pytest.mark.parametrize("operation", SMALL)
def test_small_models_have_no_output_cap_and_do_not_stream(operation: Operation) -> None:
    made = work(operation, stream=True, colour="red", user="u")
    assert (made.cap_tokens, made.stream) == (0, False)
    assert made.ignored == ("colour", "stream")
    assert b"colour" not in made.encoded


def test_documents_become_texts() -> None:
    assert sent(work(Operation.RERANK))["documents"] == ["a", "b"]


@pytest.mark.parametrize("operation", Operation)
def test_null_equals_absent(operation: Operation) -> None:
    nulls: dict[str, Any] = {
        "stream": None,
        "temperature": None,
        "dimensions": None,
        "top_n": None,
        "new": None,
    }
    assert work(operation, **nulls) == work(operation)


def test_an_unknown_field_is_refused_on_the_native_route_only() -> None:
    error = refused(Operation.GENERATE, colour="red")
    assert (error.param, error.message) == ("colour", "colour: unknown field: remove it")
    assert work(Operation.CHAT, colour="red").ignored == ("colour",)


@pytest.mark.parametrize(
    ("operation", "field", "value", "param"),
    [
        (Operation.GENERATE, "max_output_tokens", "secret", "max_output_tokens"),
        (Operation.GENERATE, "messages", [{"role": "secret", "content": ""}], "messages.0.role"),
        (Operation.EMBED, "input", [{"secret": 1}], "input"),
        (Operation.CLASSIFY, "input", ["secret", 1], "input"),
        (Operation.RERANK, "documents", ["secret", {"title": "secret"}], "documents"),
        (Operation.RERANK, "query", ["secret"], "query"),
        (Operation.SCORE, "text_2", {"secret": 1}, "text_2"),
    ],
)
def test_a_wrong_field_is_named_and_its_value_is_not_echoed(
    operation: Operation, field: str, value: object, param: str
) -> None:
    error = refused(operation, **{field: value})
    assert error.param == param
    assert error.message.startswith(f"{param}: ")
    assert "secret" not in error.message


def test_the_native_cap_is_the_callers() -> None:
    made = work(Operation.GENERATE, max_output_tokens=400, stream=True)
    assert (made.cap_tokens, made.stream) == (400, True)


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        (Operation.GENERATE, "max_output_tokens"),
        (Operation.CHAT, "max_tokens"),
        (Operation.CHAT, "max_completion_tokens"),
        (Operation.COMPLETIONS, "max_tokens"),
    ],
)
@pytest.mark.parametrize("value", [401, 10**400])
def test_a_cap_above_the_limit_is_400_and_says_the_limit(
    operation: Operation, name: str, value: int
) -> None:
    error = refused(operation, **{name: value})
    assert error.param == name
    assert "400" in error.message


@pytest.mark.parametrize(
    ("operation", "engine_name"),
    [(Operation.CHAT, "max_completion_tokens"), (Operation.COMPLETIONS, "max_tokens")],
)
def test_without_a_cap_the_routes_default_runs(operation: Operation, engine_name: str) -> None:
    made = work(operation)
    assert made.cap_tokens == 100
    assert sent(made)[engine_name] == 100
    capped = work(operation, max_tokens=7)
    assert (capped.cap_tokens, sent(capped)[engine_name]) == (7, 7)


def test_of_both_caps_one_is_passed_on() -> None:
    body = sent(work(Operation.CHAT, max_tokens=9, max_completion_tokens=7))
    assert body["max_completion_tokens"] == 7
    assert "max_tokens" not in body


def test_the_models_own_limit_is_a_limit_too() -> None:
    wide = RouteLimits(max_output_tokens=4096, default_max_output_tokens=1024)
    assert work(Operation.CHAT, wide).cap_tokens == 512
    with pytest.raises(InvalidRequest, match="512"):
        make_work(Operation.CHAT, BODIES[Operation.CHAT] | {"max_tokens": 513}, wide, GENERATOR)


@pytest.mark.parametrize(
    ("operation", "changes", "choices"),
    [
        (Operation.CHAT, {"n": 3}, 3),
        (Operation.COMPLETIONS, {"prompt": ["a", "b"], "n": 3}, 6),
        (Operation.COMPLETIONS, {"prompt": [1, 2, 3]}, 1),
        (Operation.COMPLETIONS, {"prompt": [[1, 2], [3]]}, 2),
    ],
)
def test_choices_are_n_times_prompts(
    operation: Operation, changes: dict[str, Any], choices: int
) -> None:
    assert work(operation, **changes).choices == choices


def test_the_model_is_required_and_bounded() -> None:
    assert alias_of({"model": "team/chat"}) == "team/chat"
    for body in ({}, {"model": None}, {"model": ""}, {"model": 5}, {"model": ["m"]}):
        with pytest.raises(InvalidRequest) as caught:
            alias_of(body)
        assert caught.value.param == "model"


def test_a_model_that_is_given_but_no_text_is_not_called_missing() -> None:
    with pytest.raises(InvalidRequest, match="must be text"):
        alias_of({"model": ["m"]})


def test_a_text_in_place_of_a_model_is_not_echoed() -> None:
    with pytest.raises(InvalidRequest) as caught:
        alias_of({"model": "my secret prompt " * 100})
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("operation", Operation)
def test_what_is_sent_is_the_request_as_it_came(operation: Operation) -> None:
    made, given = sent(work(operation)), dict(BODIES[operation])
    if operation is Operation.RERANK:
        given["documents"] = ["a", "b"]
    assert {name: made.get(name) for name in given if name != "model"} == {
        name: value for name, value in given.items() if name != "model"
    }


def test_the_native_deadline_is_read() -> None:
    assert work(Operation.GENERATE, deadline_ms=5).deadline_ms == 5


@pytest.mark.parametrize("value", [float("inf"), float("nan"), "half \ud800"])
def test_what_json_cannot_hold_is_refused_when_it_is_written(value: object) -> None:
    error = refused(Operation.CHAT, stream_options={"include_usage": value})
    assert "JSON cannot hold" in error.message
    assert "half" not in error.message


def test_a_flood_of_unknown_fields_is_one_error() -> None:
    error = refused(Operation.GENERATE, **{"x" * 999 + str(n): 1 for n in range(5)})
    assert error.param == "x" * 64
    flood = {"role": "user", "content": "x"} | {str(n): 1 for n in range(5)}
    assert "item 0" in refused(Operation.GENERATE, messages=[flood]).message


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(10**300, 10**320)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
NAMES = st.sampled_from(
    [
        *sorted({name for body in BODIES.values() for name in body}),
        *("stream", "n", "deadline_ms", "temperature", "dimensions", "top_n", "encoding_format"),
        *("truncate_prompt_tokens", "queries", "stop", "seed", "max_tokens"),
    ]
)


@given(
    operation=st.sampled_from(Operation),
    changes=st.dictionaries(NAMES | st.text(max_size=8), VALUES, max_size=4),
)
def test_any_json_object_is_work_or_a_request_error(
    operation: Operation, changes: dict[str, Any]
) -> None:
    body = BODIES[operation] | changes
    try:
        alias_of(body)
        made = make_work(operation, body, LIMITS, GENERATOR)
        deadline = deadline_s(made, {})
        lowered(Deadlines(), deadline)
    except InvalidRequest:
        return
    assert b"Infinity" not in made.encoded
    json.loads(made.encoded.decode())
    assert made.cap_tokens <= 400
    assert made.choices >= 1


@pytest.mark.parametrize(
    ("own_ms", "headers", "stream", "expected"),
    [
        (None, {}, False, None),
        (2500, {}, False, 2.5),
        (None, {"X-Deadline-Ms": "1500"}, True, 1.5),
        (None, {"x-stainless-read-timeout": "600"}, False, 599.0),
        (None, {"x-stainless-read-timeout": "5"}, False, 4.5),
        (None, {"x-stainless-read-timeout": "600"}, True, None),
        (2500, {"X-Deadline-Ms": "900"}, False, 0.9),
        (100, {"X-Deadline-Ms": "900"}, False, 0.1),
    ],
)
def test_the_strictest_deadline_counts(
    own_ms: int | None, headers: dict[str, str], stream: bool, expected: float | None
) -> None:
    assert deadline_s(Work(b"", stream=stream, deadline_ms=own_ms), headers) == expected


@pytest.mark.parametrize("name", ["X-Deadline-Ms", "x-stainless-read-timeout"])
@given(text=st.text() | st.sampled_from(["0", "-1", "nan", "inf", "1e400", "5e-324", "", "None"]))
def test_a_header_that_is_no_positive_number_is_400(name: str, text: str) -> None:
    try:
        seconds = deadline_s(Work(b""), {name: text})
    except InvalidRequest:
        return
    assert seconds is not None
    assert 0 < seconds < 1e9


@pytest.mark.parametrize("value", [0, -1, True, False, 1.5, "5", [], 10**400])
def test_a_native_deadline_out_of_bounds_is_400(value: object) -> None:
    assert refused(Operation.GENERATE, deadline_ms=value).param == "deadline_ms"


def test_a_callers_deadline_lowers_and_never_raises() -> None:
    route = Deadlines(first_token_s=10, idle_s=15, total_s=60, early_status_s=5)
    assert lowered(route, None) == route
    assert lowered(route, 61.0) == route
    assert lowered(route, 12.0) == Deadlines(
        first_token_s=10, idle_s=12, total_s=12, early_status_s=5
    )
    assert lowered(route, 0.001).first_token_s == 0.001
