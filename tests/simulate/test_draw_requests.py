from __future__ import annotations

import math
from pathlib import Path
from statistics import fmean, stdev

import pytest

from modelyard.simulate.load import Load, Mix, draw_requests

LOAD = Load()


def test_a_mix_changes_neither_arrivals_nor_services() -> None:
    plain = draw_requests(3, LOAD, Mix())
    mixed = draw_requests(3, LOAD, Mix(high_part=0.4, second_part=0.2, log_error_sd=1.0))
    assert [(one.arrived, one.service_s) for one in plain] == [
        (one.arrived, one.service_s) for one in mixed
    ]


def test_arrivals_follow_the_rate_and_its_fall() -> None:
    arrived = [one.arrived for seed in range(5) for one in draw_requests(seed, LOAD, Mix())]
    assert sum(at < 120 for at in arrived) / 5 / 120 == pytest.approx(26, rel=0.03)
    assert sum(at >= 120 for at in arrived) / 5 / 180 == pytest.approx(14, rel=0.03)


def test_parts_and_errors_are_as_asked() -> None:
    requests = draw_requests(1, LOAD, Mix(high_part=0.4, second_part=0.2, log_error_sd=1.0))
    errors = [math.log((one.predicted or 0.0) / one.service_s) for one in requests]
    assert fmean(one.band == "interactive" for one in requests) == pytest.approx(0.4, abs=0.02)
    assert fmean(one.entry for one in requests) == pytest.approx(0.2, abs=0.02)
    assert fmean(errors) == pytest.approx(0.0, abs=0.05)
    assert stdev(errors) == pytest.approx(1.0, rel=0.05)


def test_recorded_lengths_keep_their_order_and_the_mean_service(tmp_path: Path) -> None:
    for name, tokens in (("chat", (100, 300)), ("code", (10, 30))):
        lines = [f"{2 * i + (name == 'code')},{i},{n}" for i, n in enumerate(tokens)]
        (tmp_path / f"{name}.csv").write_text(
            "\n".join(["offset_s,input_tokens,output_tokens", *lines])
        )
    traces = (tmp_path / "chat.csv", tmp_path / "code.csv")
    requests = draw_requests(1, LOAD, Mix(traces=traces))[:8]
    order = [(one.length.tenant, one.length.output_tokens) for one in requests]
    begin = order.index(("chat", 100)) % 4
    assert order[begin : begin + 4] == [("chat", 100), ("code", 10), ("chat", 300), ("code", 30)]
    assert order[:4] == order[4:]
    assert fmean(one.service_s for one in requests) == pytest.approx(LOAD.mean_service_s)
