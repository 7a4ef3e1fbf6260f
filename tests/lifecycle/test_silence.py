"""Who is still there, by the age of the last post."""

import pytest

from modelyard.lifecycle.phases import START, Phase
from modelyard.lifecycle.silence import ALIVE_S, SILENT_S, is_there


@pytest.mark.parametrize("phase", [Phase.READY, Phase.DRAINING])
def test_one_that_serves_is_gone_after_five_seconds(phase: Phase) -> None:
    assert is_there(phase, ALIVE_S - 0.1)
    assert not is_there(phase, ALIVE_S)


@pytest.mark.parametrize("phase", START)
def test_a_start_is_dead_after_twenty(phase: Phase) -> None:
    assert is_there(phase, SILENT_S - 0.1)
    assert not is_there(phase, SILENT_S)


def test_why_one_failed_stays_to_be_seen() -> None:
    assert is_there(Phase.FAILED, 100.0)
