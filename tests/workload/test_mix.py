from typing import Any

import pytest
from pydantic import ValidationError

from modelyard.workload.mix import Workload

STEADY = {"constant": {"rate_per_s": 6.0}}


def workload(*streams: dict[str, Any], **fields: Any) -> Workload:
    base = {"route": "chat", "model": "m"}
    record = {"schema": "modelyard/workload/v1", "streams": [base | each for each in streams]}
    return Workload.model_validate(record | fields)


def test_streams_share_the_arrivals_or_have_their_own() -> None:
    mixed = workload(
        {"name": "a"}, {"name": "b", "arrivals": {"poisson": {"rate_per_s": 2}}}, arrivals=STEADY
    )
    assert mixed.mean_per_s({}) == 8.0
    assert mixed.length_s({}) is None


def test_another_rate_is_shared_out_as_before() -> None:
    mixed = workload(
        {"name": "a"}, {"name": "b", "arrivals": {"poisson": {"rate_per_s": 2}}}, arrivals=STEADY
    ).at(16.0, {})
    assert [each.process.mean_per_s({}) for each in mixed.processes()] == [12.0, 4.0]


@pytest.mark.parametrize(
    ("streams", "fields", "said"),
    [
        ([{"name": "a"}], {}, "stream a has no arrivals"),
        ([{"name": "a"}, {"name": "a"}], {"arrivals": STEADY}, "two streams have one name"),
        ([{"name": "a", "arrivals": STEADY}], {"arrivals": STEADY}, "arrivals of its own"),
        (
            [{"name": "a", "sizes_trace": "t", "input_tokens": {"fixed": 1}}],
            {"arrivals": STEADY},
            "sizes_trace gives both sizes",
        ),
    ],
)
def test_a_workload_that_contradicts_itself_is_refused(
    streams: list[dict[str, Any]], fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        workload(*streams, **fields)


def test_the_files_to_read_are_those_of_arrivals_and_sizes() -> None:
    mixed = workload(
        {"name": "a", "input_tokens": {"trace": {"file": "x.csv", "column": "input_tokens"}}},
        {"name": "b", "sizes_trace": "y.csv"},
        arrivals={"replay": {"file": "z.csv"}},
    )
    assert mixed.trace_files() == {"x.csv", "y.csv", "z.csv"}


def test_only_generating_routes_stream() -> None:
    mixed = workload({"name": "a"}, {"name": "b", "route": "embeddings"}, arrivals=STEADY)
    assert [stream.streamed for stream in mixed.streams] == [True, False]
