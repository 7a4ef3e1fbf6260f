"""What an ingress reports to control, and what it does with the reply."""

from typing import cast

from deployments.control_client import RayControl
from deployments.follow_control import FollowControl
from modelyard.control.published import Published
from modelyard.control.report import ControlReply, ControlReport
from modelyard.control.usage import UsageLedger
from modelyard.rollout.outcome import Judgement
from modelyard.testing.in_memory import InMemoryIngress


class FakeControl:
    """Keeps what it is told; `replies` in order, None for a control that does not answer."""

    def __init__(self, *replies: ControlReply | None) -> None:
        self.replies = list(replies)
        self.reports: list[ControlReport] = []

    async def exchange(self, report: ControlReport) -> ControlReply | None:
        self.reports.append(report)
        return self.replies.pop(0)

    def numbers(self) -> list[list[int]]:
        return [[batch.number for batch in report.outcomes] for report in self.reports]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def judge(ingress: InMemoryIngress, unit: str) -> None:
    ingress.pipeline.outcomes.judge(Judgement("r-1", "stable", unit, "", True, "judge"))


def following(ingress: InMemoryIngress, control: FakeControl) -> FollowControl:
    return FollowControl(ingress.pipeline, cast(RayControl, control), UsageLedger())


async def test_outcomes_are_told_until_control_says_that_it_has_them() -> None:
    ingress = InMemoryIngress(now=Clock())
    control = FakeControl(None, ControlReply(1), ControlReply(1, outcomes_taken=2), ControlReply(1))
    follow = following(ingress, control)
    judge(ingress, "a")
    await follow.step()  # nobody answers
    judge(ingress, "b")
    await follow.step()  # the reply is of a control that has neither
    await follow.step()
    judge(ingress, "c")
    await follow.step()
    assert control.numbers() == [[1], [1, 2], [1, 2], [3]]


async def test_the_word_of_a_reply_is_obeyed_without_a_board() -> None:
    ingress = InMemoryIngress()
    finished = frozenset({"r-1"})
    word = Published(1, 1, (("r-1", 0.0),), finished=finished, shadows=(("r-2", 5.0),))
    await following(ingress, FakeControl(ControlReply(1, word=word))).step()
    steering = ingress.pipeline.router.steering
    assert (steering.weights, steering.finished) == ({"r-1": 0.0}, finished)
    assert steering.shadows == {"r-2": 5.0}
