from modelyard.lifecycle.phases import Phase, PhaseLog


class Clock:
    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


def test_a_replica_begins_by_fetching() -> None:
    log = PhaseLog(Clock())
    assert (log.phase, log.phase_s, log.done) == (Phase.FETCHING, 0.0, ())


def test_each_phase_keeps_its_seconds_in_order() -> None:
    clock = Clock()
    log = PhaseLog(clock)
    for phase, seconds in ((Phase.VERIFYING, 2.0), (Phase.LOADING, 0.5), (Phase.READY, 30.0)):
        clock.s += seconds
        log.enter(phase)
    clock.s += 7.0
    assert log.done == ((Phase.FETCHING, 2.0), (Phase.VERIFYING, 0.5), (Phase.LOADING, 30.0))
    assert (log.phase, log.phase_s) == (Phase.READY, 7.0)


def test_entering_the_present_phase_again_changes_nothing() -> None:
    clock = Clock()
    log = PhaseLog(clock)
    clock.s += 1.0
    log.enter(Phase.FETCHING)
    assert (log.done, log.phase_s) == ((), 1.0)


def test_a_phase_may_come_back() -> None:
    clock = Clock()
    log = PhaseLog(clock)
    log.enter(Phase.READY)
    log.enter(Phase.FAILED)
    log.enter(Phase.READY)
    assert [phase for phase, _ in log.done] == [Phase.FETCHING, Phase.READY, Phase.FAILED]
