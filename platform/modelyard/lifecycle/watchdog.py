"""Whether a busy replica has stopped making progress. Pure: time and evidence are passed in.

A per-request time-out would not do: a request that waits behind a long prefill is well. What counts
is that no sequence at all has moved (vLLM's own discussion of a watchdog ends there too, #36130).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PERIOD_S: Final = 1.0
STEPS: Final = 4  # times the longest step of warm-up that a step may take
HARD_CAP: Final = 10  # times stall_after_s: beyond it nothing is an excuse
# Of the wall clock. A process that waits for ever burns next to nothing, one that computes burns
# all it can get. Not a half: ten engines that share two cores get a fifth of one each.
COMPUTING_SHARE: Final = 0.1
# A check that comes so late (in periods) says that this process, or its whole machine, was paused:
# nobody looked, and the time proves nothing.
LATE_PERIODS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a replica at one moment.

    steps: engine steps, or batches, that ended since its start. busy: it holds work. cpu_s: CPU
    seconds that its engine has burned; None where that proves nothing (a process that waits for a
    hung GPU spins).
    """

    steps: int
    busy: bool
    cpu_s: float | None = None


class Watchdog:
    """Call `check` every `period_s`. It adds up busy seconds since the last step, so:

    an idle replica is never stalled; the first step counts from when there was work; and work that
    its callers give up on while an engine hangs still counts, else short deadlines would hide it.
    """

    def __init__(
        self, stall_after_s: float, longest_step_s: float = 0.0, period_s: float = PERIOD_S
    ) -> None:
        """longest_step_s: measured in warm-up, where the longest prompt that fits was run."""
        self._period_s = period_s
        self.cap_s = HARD_CAP * stall_after_s
        self.allowance_s = min(max(stall_after_s, STEPS * longest_step_s), self.cap_s)
        self._last: tuple[float, Evidence] | None = None
        self._quiet_s = 0.0  # busy, no step
        self._idle_s = 0.0  # of these, those in which the engine did not compute either

    def check(self, now: float, evidence: Evidence) -> str | None:
        """Why the replica is stalled, in words; None while it is not."""
        last, self._last = self._last, (now, evidence)
        if last is None:
            return None
        at, before = last
        if evidence.steps != before.steps:
            self._quiet_s = self._idle_s = 0.0
            return None
        if not evidence.busy:
            return None
        passed_s = min(max(now - at, 0.0), LATE_PERIODS * self._period_s)
        self._quiet_s += passed_s
        if not _computes(before, evidence, passed_s):
            self._idle_s += passed_s
        if self._idle_s >= self.allowance_s:
            return f"busy for {self._quiet_s:.0f} s without a step"
        if self._quiet_s >= self.cap_s:
            return f"busy for {self._quiet_s:.0f} s without a step, though it computes"
        return None


def _computes(before: Evidence, now: Evidence, passed_s: float) -> bool:
    if before.cpu_s is None or now.cpu_s is None:
        return False
    return now.cpu_s - before.cpu_s >= COMPUTING_SHARE * passed_s and passed_s > 0
