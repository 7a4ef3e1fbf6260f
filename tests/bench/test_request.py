from pathlib import Path
from typing import Any

import pytest

from modelyard.bench.request import Flags, load_of
from modelyard.contract.errors import ConfigError
from modelyard.workload.slo import Slo

SIMPLE: dict[str, Any] = {"route": "chat", "model": "m"}


def test_flags_make_a_workload_of_one_stream() -> None:
    load = load_of(
        Flags(**SIMPLE, rate="1,2", slo="e2e=2s", seed=7, items=3, extra_body='{"a": 1}')
    )
    (stream,) = load.workload.streams
    assert (stream.route, stream.model, stream.items) == ("chat", "m", 3)
    assert stream.extra_body == {"a": 1}
    assert load.workload.slo == Slo(e2e_s=2)
    assert load.workload.seed == 7
    assert load.rates_per_s == (1, 2)
    assert (load.duration_s, load.warmup_s) == (60, 10)


def test_a_shape_has_its_own_length_and_no_warm_up(tmp_path: Path) -> None:
    load = load_of(Flags(**SIMPLE, steps="26@120,14@180"))
    assert (load.duration_s, load.warmup_s) == (300, 0)
    assert list(load.rates_per_s) == pytest.approx([18.8])
    trace = tmp_path / "t.csv"
    trace.write_text("offset_s,input_tokens,output_tokens\n0,1,1\n8,1,1\n")
    replay = load_of(Flags(**SIMPLE, replay=str(trace)))
    assert replay.duration_s == pytest.approx(8)
    assert replay.rates_per_s == (0.25,)
    assert load_of(Flags(**SIMPLE, replay=str(trace), rate="2")).rates_per_s == (2,)


def test_a_file_is_taken_with_the_flags_that_are_not_of_a_stream(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(
        "schema: modelyard/workload/v1\nduration_s: 30\narrivals: {constant: {rate_per_s: 3}}\n"
        "streams: [{name: a, route: chat, model: m}]\n"
    )
    load = load_of(Flags(workload=path, slo="ttft=1s", seed=9, warmup_s=2.0))
    assert load.workload.slo == Slo(ttft_s=1)
    assert load.workload.seed == 9
    assert (load.rates_per_s, load.duration_s, load.warmup_s) == ((3,), 30, 2)
    with pytest.raises(ConfigError, match="--input-tokens and --workload exclude each other"):
        load_of(Flags(workload=path, input_tokens="5"))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"model": "m", "rate": "1"}, "--route is missing"),
        ({"route": "chat", "rate": "1"}, "--model is missing"),
        ({**SIMPLE}, "nothing says how much to send"),
        ({**SIMPLE, "steps": "1@1", "replay": "x"}, "exclude each other"),
        ({**SIMPLE, "steps": "1@1", "arrivals": "constant"}, "exclude each other"),
        ({**SIMPLE, "rate": "1", "duration_s": 5.0, "warmup_s": 5.0}, "leaves nothing of 5 s"),
        ({**SIMPLE, "rate": "1", "extra_body": "["}, "--extra-body is no JSON"),
        ({**SIMPLE, "rate": "1", "extra_body": "[]"}, "must be a JSON object"),
        ({**SIMPLE, "rate": "1", "items": 10**9}, "items: 1000000000: "),
        ({**SIMPLE, "replay": "/nowhere.csv"}, "cannot be read"),
    ],
)
def test_faulty_flags_are_a_sentence(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_of(Flags(**fields))
