"""The policies of the overload experiment: the seeds' own, and production in its variants."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from modelyard.admission.version_queue import VersionQueue
from modelyard.admission.waiting import Order
from modelyard.simulate.agenda import Agenda
from modelyard.simulate.experiment import Row
from modelyard.simulate.fifo import FifoIngress
from modelyard.simulate.load import Mix
from modelyard.simulate.queued import Learned, QueuedIngress
from modelyard.simulate.request import Caller, Ingress
from modelyard.simulate.sharing import Board
from modelyard.simulate.slots import Slots

HIGH: Final = Mix(high_part=0.4)
SKEWED: Final = Mix(second_part=0.2)
SKEWED_HIGH: Final = Mix(high_part=0.4, second_part=0.2)


def fifo(
    agenda: Agenda,
    slots: Slots,
    caller: Caller,
    seed: int,
    *,
    bound: int | None = None,
    max_wait_s: float | None = None,
) -> Sequence[Ingress]:
    return [FifoIngress(agenda, slots, caller, bound, max_wait_s)]


def production(
    agenda: Agenda,
    slots: Slots,
    caller: Caller,
    seed: int,
    *,
    ingresses: int = 1,
    order: Order = "deadline",
    age_cap_s: float = 2.0,
    cut: bool = False,
    learns: bool | None = None,
) -> Sequence[Ingress]:
    """cut: what is not answered at its deadline is cancelled and frees its slot, as the pipeline
    does; without it the server works on for callers that have gone, as the seeds' does. learns: the
    lengths from the answers, True by the prompt's length too; None: not at all."""
    made = [
        QueuedIngress(
            agenda,
            slots,
            caller,
            VersionQueue(order, age_cap_s),
            Random(f"{seed} {number}"),
            cut=cut,
            learned=None if learns is None else Learned(by_prompt=learns),
        )
        for number in range(ingresses)
    ]
    if ingresses > 1:
        Board(agenda, slots.count, made)
    return made


def trace_rows(traces: tuple[Path, ...]) -> tuple[Row, ...]:
    """Recorded lengths: by deadline, by what was learned of them, and by themselves."""
    shortest = partial(production, order="shortest")
    known = Mix(traces=traces, log_error_sd=0.0)
    mix = Mix(traces=traces)
    named = " + ".join(path.stem for path in traces)
    return (
        Row(f"{named}: by deadline", production, mix, draws_at_start=False),
        Row(
            f"{named}: shortest first, learned by tenant and cap",
            partial(shortest, learns=False),
            mix,
            draws_at_start=False,
        ),
        Row(
            f"{named}: shortest first, learned by prompt too",
            partial(shortest, learns=True),
            mix,
            draws_at_start=False,
        ),
        Row(f"{named}: shortest first, lengths known", shortest, known, draws_at_start=False),
    )


def _shortest(log_error_sd: float) -> Row:
    return Row(
        f"shortest predicted first, log-error sd {log_error_sd:.1f}",
        partial(production, order="shortest"),
        Mix(log_error_sd=log_error_sd),
        draws_at_start=False,
    )


SEEDS_OWN: Final = (
    Row("unbounded FIFO", fifo),
    Row("bounded queue, 40", partial(fifo, bound=40)),
    Row("bounded queue, 20", partial(fifo, bound=20)),
    Row("bounded queue, 10", partial(fifo, bound=10)),
    Row("drop if waited > 1 s", partial(fifo, max_wait_s=1.0)),
)
BEST_BOUND: Final = SEEDS_OWN[3]
PLAIN: Final = Row("production", production)
CUT: Final = Row("production, cut", partial(production, cut=True))
HIGH_LOW: Final = Row("production, 40 % high", production, HIGH)
HIGH_LOW_CUT: Final = Row("production, 40 % high, cut", partial(production, cut=True), HIGH)
TWO: Final = Row("two ingresses 80/20, cut", partial(production, ingresses=2, cut=True), SKEWED)
TWO_HIGH: Final = Row(
    "two ingresses 80/20, 40 % high, cut", partial(production, ingresses=2, cut=True), SKEWED_HIGH
)
OWN_LENGTHS: Final = Row("by deadline, the requests below", production, draws_at_start=False)
SHORTEST: Final = tuple(_shortest(sd) for sd in (0.0, 0.5, 1.0, 1.5))
# Whoever has waited half of what it may goes first: long requests are passed over no longer.
AGED: Final = Row(
    "the same at sd 1.0, age cap 0.4 s",
    partial(production, order="shortest", age_cap_s=0.4),
    Mix(log_error_sd=1.0),
    draws_at_start=False,
)

ROWS: Final = (
    *SEEDS_OWN,
    PLAIN,
    CUT,
    HIGH_LOW,
    HIGH_LOW_CUT,
    TWO,
    TWO_HIGH,
    OWN_LENGTHS,
    *SHORTEST,
    AGED,
)
