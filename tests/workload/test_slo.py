import pytest

from modelyard.contract.errors import ConfigError
from modelyard.workload.slo import Slo


def test_any_subset_of_bounds_can_be_written() -> None:
    assert Slo.parse("ttft=1s,e2e=10s,itl=100ms") == Slo(ttft_s=1, e2e_s=10, itl_s=0.1)
    assert Slo.parse("e2e=2m") == Slo(e2e_s=120)


@pytest.mark.parametrize(
    "text", ["", "ttft=1", "tft=1s", "e2e=0s", "e2e=1s,e2e=2s", "itl=-1s", "e2e=" + "9" * 400 + "s"]
)
def test_a_bound_that_makes_no_sense_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match="is no bound: write ttft, e2e or itl"):
        Slo.parse(text)


def test_a_request_is_good_when_it_meets_every_bound() -> None:
    slo = Slo(ttft_s=1, e2e_s=10, itl_s=0.1)
    assert slo.met(10.0, 1.0, 0.1)
    assert not slo.met(10.1, 1.0, 0.1)
    assert not slo.met(9.0, 1.1, 0.1)
    assert not slo.met(9.0, 1.0, 0.11)
    assert not slo.met(9.0, None, 0.1)  # nothing was seen, so nothing was met
    assert not slo.met(9.0, 1.0, None)
    assert slo.of_unary.met(9.0, None, None)  # only its end is seen
    assert Slo().met(1e9, 1e9, 1e9)


def test_what_was_not_seen_is_unmeasured_only_where_it_is_bounded() -> None:
    assert Slo(ttft_s=1).unmeasured(None, 0.1)
    assert Slo(itl_s=1).unmeasured(1.0, None)
    assert not Slo(e2e_s=1).unmeasured(None, None)
