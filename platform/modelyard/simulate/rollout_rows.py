"""What is simulated of rollouts, and what it must come to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from modelyard.config.rollout import Gates, RatioGate, Rollout
from modelyard.simulate.rollout import NAME, Run
from modelyard.simulate.rollout_share import Goal
from modelyard.simulate.rollout_traffic import Arm, Traffic

# The gates' constants were chosen while looking at seeds from 0 on: what is measured on those is
# too good. Whoever tunes on the seeds from here on must raise this.
FIRST_SEED: Final = 1_000_000
MOST_RUNS: Final = 10_000  # of a row: rows have seeds of their own
WEIGHT: Final = 0.05
_MINUTE_S: Final = 60.0
_HOUR_S: Final = 3600.0
INCIDENT: Final = (300.0, 480.0, 0.3)  # from, until, and the share of errors

SAME: Final = Traffic()
WORSE: Final = Traffic(canary=Arm(errors=0.03))
SLOWER: Final = Traffic(canary=Arm(first=1.3, pace=1.3))
CHATTY: Final = Traffic(canary=Arm(longer=2.0))


def whole(traffic: Traffic, tick_s: float = 10.0, **plan: object) -> Run:
    """1, 5, 25, 50, 100 %: ten minutes each, and 300 requests."""
    return Run(traffic, _plan(**plan), tick_s)


def one_step(
    traffic: Traffic, tick_s: float = 2.0, minutes: float = 20.0, percent: float = 100 * WEIGHT
) -> Run:
    """At 5 % of 40 requests a second: 2 a second on the canary."""
    plan = _plan(steps_percent=(percent, 100.0), hold_s=minutes * _MINUTE_S)
    return Run(traffic, plan, tick_s, passed_at=100.0)


def _plan(**changes: object) -> Rollout:
    return Rollout.model_validate({"id": NAME, "start": "automatic", **changes})


def turns(traffic: Traffic, count: float) -> Traffic:
    return replace(traffic, turns=count)


NONE: Final = Goal()


@dataclass(frozen=True, slots=True)
class Row:
    """key: how the command calls it. number: of its seeds. runs: as many as its goal needs.
    point: how many runs the seed's point rule gets on the same traffic. since_s: of the fault."""

    key: str
    number: int
    name: str
    run: Run
    runs: int
    goal: Goal = NONE
    point: int = 0
    since_s: float = 0.0

    def __post_init__(self) -> None:
        if self.runs > MOST_RUNS:
            raise ValueError(f"a row has {MOST_RUNS} seeds at most")

    @property
    def first_seed(self) -> int:
        return FIRST_SEED + MOST_RUNS * self.number


FALSE: Final = Goal(most=0.01)
SHARED: Final = Goal(most=0.001)
SEEN: Final = Goal(least=0.99, median_s=6 * _MINUTE_S)
SEEN_SLOW: Final = Goal(least=0.99, median_s=5 * _MINUTE_S)

AA: Final = Row("same", 1, "the same version, 1 to 100 %", whole(SAME), 2000, FALSE, 200)
AA_TURNS: Final = Row(
    "same-5",
    2,
    "the same, 5 turns, 5 minutes a step",
    whole(turns(SAME, 5), 15.0, hold_s=5 * _MINUTE_S),
    600,
    FALSE,
    100,
)
ERRORS: Final = Row("errors", 13, "errors 1 -> 3 %", one_step(WORSE, 5.0), 2000, SEEN, 200)
ERRORS_5: Final = Row(
    "errors-5", 4, "errors 1 -> 3 %, 5 turns", one_step(turns(WORSE, 5), 4.0), 300, SEEN, 100
)
ERRORS_20: Final = Row(
    "errors-20", 5, "errors 1 -> 3 %, 20 turns", one_step(turns(WORSE, 20), 4.0), 250, SEEN, 100
)
SLOW: Final = Row("slower", 6, "1.3 x slower", one_step(SLOWER), 700, SEEN_SLOW)
SLOW_5: Final = Row(
    "slower-5", 7, "1.3 x slower, 5 turns", one_step(turns(SLOWER, 5), 4.0), 200, SEEN_SLOW
)
SHARED_INCIDENT: Final = Row(
    "incident",
    8,
    "3 minutes of 30 % errors on both, at 5 %",
    one_step(replace(SAME, incident=INCIDENT), 10.0, 12.0),
    3700,
    SHARED,
    200,
)
SHARED_INCIDENT_5: Final = Row(
    "incident-5",
    9,
    "such an incident, 5 turns",
    one_step(replace(turns(SAME, 5), incident=INCIDENT), 15.0, 12.0),
    400,
    SHARED,
    100,
)
GOALS: Final = (
    AA,
    ERRORS,
    SLOW,
    SHARED_INCIDENT,
    AA_TURNS,
    ERRORS_5,
    ERRORS_20,
    SLOW_5,
    SHARED_INCIDENT_5,
)

INSIDE: Final = Traffic(canary=Arm(errors=0.013))
_E2E_HOLDS: Final = Gates(e2e=RatioGate(margin_percent=10, on_fail="hold"))
_LATE: Final = replace(SAME, late=(2 * _HOUR_S, Arm(errors=0.03)))
_BREAKS: Final = replace(SAME, late=(_HOUR_S, Arm(errors=1.0)))
OTHERS: Final = (
    Row("inside", 20, "errors 1 -> 1.3 %, 1 to 100 %", whole(INSIDE), 150, point=100),
    Row(
        "inside-200",
        21,
        "the same at 200 requests/s",
        whole(replace(INSIDE, rate_per_s=200.0), 15.0),
        60,
        point=50,
    ),
    Row(
        "body",
        22,
        "medians 1.2 x, the same p95, 1 to 100 %",
        whole(Traffic(canary=Arm(body=1.2))),
        50,
    ),
    Row(
        "late",
        23,
        "5 %: after 2 good hours, errors 1 -> 3 %",
        replace(one_step(_LATE, 10.0, 240.0), until_s=4 * _HOUR_S),
        40,
        since_s=2 * _HOUR_S,
    ),
    Row(
        "breaks",
        24,
        "100 %: after 1 good hour, everything fails",
        Run(_BREAKS, _plan(steps_percent=(100.0,), hold_s=2 * _HOUR_S), 5.0),
        40,
        since_s=_HOUR_S,
    ),
    Row(
        "refused",
        25,
        "it answers 400 to 10 %",
        one_step(Traffic(canary=Arm(refused=0.1))),
        100,
    ),
    Row("chatty", 26, "answers 2 x as long", one_step(CHATTY, 5.0), 100),
    Row(
        "chatty-hold",
        27,
        "the same, e2e on hold",
        replace(
            one_step(CHATTY, 5.0),
            plan=_plan(
                steps_percent=(100 * WEIGHT, 100.0), hold_s=20 * _MINUTE_S, gates=_E2E_HOLDS
            ),
        ),
        100,
    ),
    Row("long", 28, "answers 1.05 x as long", one_step(Traffic(canary=Arm(longer=1.05)), 5.0), 50),
    Row("errors-2", 29, "errors 1 -> 2 %", one_step(Traffic(canary=Arm(errors=0.02))), 60),
    Row("errors-10", 30, "errors 1 -> 10 %", one_step(Traffic(canary=Arm(errors=0.1))), 60),
    Row(
        "errors-5-own",
        37,
        "errors 1 -> 3 %, 5 turns that are not alike",
        one_step(replace(turns(WORSE, 5), alike=0.0), 4.0),
        120,
        SEEN,
    ),
    Row(
        "slower-5-own",
        38,
        "1.3 x slower, 5 turns that are not alike",
        one_step(replace(turns(SLOWER, 5), alike=0.0), 4.0),
        60,
        SEEN_SLOW,
    ),
    Row(
        "errors-whole-5",
        39,
        "errors 1 -> 3 %, 5 turns, from 1 to 100 %",
        whole(turns(WORSE, 5)),
        60,
    ),
    Row("errors-whole", 31, "errors 1 -> 3 %, from 1 to 100 %", whole(WORSE), 60),
    Row(
        "clumped",
        32,
        "the same version, 5 turns, conversations fail whole",
        one_step(replace(turns(SAME, 5), alike=1.0), 10.0),
        100,
        FALSE,
    ),
    Row(
        "incident-50",
        33,
        "such an incident at 50 %",
        one_step(replace(SAME, incident=INCIDENT), 10.0, 12.0, 50.0),
        100,
        FALSE,
    ),
    Row("pace", 34, "only e2e 1.3 x slower", one_step(Traffic(canary=Arm(pace=1.3))), 60),
    Row(
        "slower-9",
        35,
        "1.3 x slower, TTFT's sigma .9",
        one_step(replace(SLOWER, sigma=0.9)),
        60,
    ),
    Row(
        "slower-1.05",
        36,
        "1.05 x slower",
        one_step(Traffic(canary=Arm(first=1.05, pace=1.05)), 5.0),
        50,
    ),
    Row("same-1s", 40, "the same version, looked at each second", one_step(SAME, 1.0), 30),
    Row("errors-1s", 41, "errors 1 -> 3 %, each second", one_step(WORSE, 1.0), 30),
    Row(
        "same-records",
        42,
        "the same version, as records, saved and read",
        replace(whole(SAME), way="outcomes"),
        12,
    ),
    Row(
        "errors-records",
        43,
        "errors 1 -> 3 %, 5 turns, each second, as records",
        replace(one_step(turns(WORSE, 5), 1.0), way="outcomes"),
        12,
    ),
)
ROWS: Final = (*GOALS, *OTHERS)


def chosen(keys: Iterable[str]) -> tuple[Row, ...]:
    """All of them where none is named. Raises KeyError."""
    by_key = {row.key: row for row in ROWS}
    return tuple(by_key[key] for key in keys) or ROWS
