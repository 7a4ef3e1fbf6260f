from collections import Counter
from typing import Any

import pytest

from modelyard.workload.mix import Workload
from modelyard.workload.plan import Planned, plan
from modelyard.workload.trace import Recorded, Trace

TRACES = {"t": Trace((Recorded(0, 11, 1), Recorded(0.5, 22, 2), Recorded(3, 33, 3)))}
POISSON = {"poisson": {"rate_per_s": 20}}


def planned(*streams: dict[str, Any], seconds: float = 100.0, **fields: Any) -> list[Planned]:
    base = {"route": "chat", "model": "m"}
    record = {"schema": "modelyard/workload/v1", "streams": [base | each for each in streams]}
    return list(plan(Workload.model_validate(record | fields), TRACES, seconds))


def test_the_same_seed_gives_the_same_plan_and_another_another() -> None:
    streams = ({"name": "a"}, {"name": "b", "weight": 2})
    first = planned(*streams, arrivals=POISSON, seed=4)
    assert first == planned(*streams, arrivals=POISSON, seed=4)
    assert first != planned(*streams, arrivals=POISSON, seed=5)


def test_requests_are_numbered_in_order_of_time_and_end_with_the_duration() -> None:
    requests = planned({"name": "a"}, {"name": "b", "arrivals": POISSON}, arrivals=POISSON)
    assert [one.number for one in requests] == list(range(len(requests)))
    times = [one.at_s for one in requests]
    assert times == sorted(times)
    assert 95 < times[-1] < 100


def test_streams_get_their_weight_of_the_arrivals() -> None:
    requests = planned({"name": "a"}, {"name": "b", "weight": 3}, arrivals=POISSON, seconds=500)
    counts = Counter(one.stream.name for one in requests)
    assert counts["b"] / len(requests) == pytest.approx(0.75, abs=0.02)


def test_other_sizes_do_not_move_the_arrivals() -> None:
    lengths = {"lognormal": {"median": 50, "sigma": 1}}
    plain = planned({"name": "a"}, arrivals=POISSON)
    sized = planned({"name": "a", "input_tokens": lengths}, arrivals=POISSON)
    assert [one.at_s for one in plain] == [one.at_s for one in sized]
    assert {one.input_tokens for one in plain} == {128}
    assert len({one.input_tokens for one in sized}) > 20


def test_a_replay_brings_its_sizes_unless_the_stream_has_its_own() -> None:
    replay = {"replay": {"file": "t"}}
    asis = planned({"name": "a"}, arrivals=replay)
    assert [(r.at_s, r.input_tokens, r.output_tokens) for r in asis] == [
        (0, 11, 1),
        (0.5, 22, 2),
        (3, 33, 3),
    ]
    own = planned({"name": "a", "output_tokens": {"fixed": 9}}, arrivals=replay)
    assert [(r.input_tokens, r.output_tokens) for r in own] == [(11, 9), (22, 9), (33, 9)]


def test_sizes_of_a_trace_are_drawn_in_pairs() -> None:
    requests = planned({"name": "a", "sizes_trace": "t"}, arrivals=POISSON)
    assert {(r.input_tokens, r.output_tokens) for r in requests} == {(11, 1), (22, 2), (33, 3)}
