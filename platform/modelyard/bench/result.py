"""The result file: what was asked, on what, and what came of it. One schema for run and merge."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Final, Literal

from pydantic import ConfigDict, Field, ValidationError

from modelyard.bench.group_record import GroupRecord, TimelineRecord
from modelyard.bench.retry import RetryKind
from modelyard.config.frozen import Frozen
from modelyard.config.table import describe
from modelyard.contract.errors import ConfigError
from modelyard.workload.mix import Workload

SCHEMA: Final = "modelyard/bench/v1"
# Above both, what is measured is the generator: a timer alone is late by up to a millisecond.
LATE_MS: Final = 10.0
LATE_SHARE: Final = 0.05
NO_WINDOW_S: Final = 1e-9  # of a run that was stopped in its warm-up: rates divide by it
MIN_WINDOW_S: Final = 1e-6  # shorter ones are none: a merge adds some of the above


class Options(Frozen):
    """What a run was asked for, beside its workload. Keys are named by their tenants only."""

    url: str
    tenants_with_keys: tuple[str, ...]
    rates_per_s: tuple[float, ...]
    duration_s: float
    warmup_s: float
    goodput_percent: float
    all_rates: bool = False
    retry: RetryKind = RetryKind.NONE
    max_attempts: int = 4
    timeout_s: float
    connections: int | None = None
    new_connections: bool = False
    closed_loop_users: int | None = None


class Level(Frozen):
    """One rate. window_s: measured seconds, after the warm-up. drained_s: until the last ended.

    started_unix_s: when it began, of the earliest generator. cpu_cores: used by the generators.
    """

    rate_per_s: float
    started_unix_s: float
    window_s: float
    drained_s: float
    interrupted: bool
    cpu_cores: float
    total: GroupRecord
    streams: dict[str, GroupRecord]
    timeline: TimelineRecord

    @property
    def stopped_in_warmup(self) -> bool:
        return self.interrupted and self.window_s < MIN_WINDOW_S

    @property
    def offered_per_s(self) -> float:
        return self.total.offered / self.window_s

    @property
    def completed_per_s(self) -> float:
        """Within the window: what ends after it is no rate of the server's."""
        return self.total.completed_in_window / self.window_s

    @property
    def goodput_per_s(self) -> float:
        return self.total.good_in_window / self.window_s

    @property
    def schedule_kept(self) -> bool:
        """Whether the generator sent so nearly on time that it may be left out of account."""
        late_ms = self.total.late.p99_ms or 0.0
        return late_ms <= max(LATE_MS, LATE_SHARE * (self.total.e2e.p50_ms or 0.0))

    def held(self, goodput_percent: float) -> bool:
        """Enough of what was due was good, and the rest did not just come later and later."""
        percent = self.total.good_percent
        enough = percent is not None and percent >= goodput_percent
        return enough and self.kept_up(goodput_percent)

    def kept_up(self, goodput_percent: float) -> bool:
        """Whether as much ended as came, in the second half of the window.

        What is under way grows where it did not. By chance it also grows: by twice the standard
        deviation of the difference of two Poisson counts. Needs no SLO. An interrupted level has
        no end of its window to look at, and is given the benefit of the doubt.
        """
        total = self.total
        growth = total.under_way_at_end - total.under_way_halfway
        share = (1 - goodput_percent / 100) * total.due_in_second_half
        chance = 2 * math.sqrt(total.under_way_at_end + total.under_way_halfway)
        return self.interrupted or growth <= max(share, chance)


class Result(Frozen):
    """knee_per_s: the last rate before the first that did not hold; None where no knee was seen.

    highest_held_per_s: the highest rate up to which every rate held; None where none did.

    traces: SHA-256 of each recorded trace, by the name the workload gives it. runs: the ids of
    the runs it is made of, one for a run itself.
    """

    model_config = ConfigDict(populate_by_name=True)

    schema_: Literal["modelyard/bench/v1"] = Field(alias="schema")
    modelyard: str
    python: str
    machine: str
    options: Options
    workload: Workload
    traces: dict[str, str]
    runs: tuple[str, ...] = Field(min_length=1)
    levels: tuple[Level, ...] = Field(min_length=1)
    knee_per_s: float | None
    highest_held_per_s: float | None = None
    notes: tuple[str, ...] = ()

    def as_json(self) -> str:
        record = self.model_dump(mode="json", by_alias=True, exclude_none=False)
        record["workload"] = self.workload.model_dump(
            mode="json", by_alias=True, exclude_defaults=True
        ) | {"schema": self.workload.schema_, "seed": self.workload.seed}
        return json.dumps(record, indent=1)


def knee_of(levels: tuple[Level, ...], goodput_percent: float) -> float | None:
    """The last rate before the first one that does not hold. levels: in order of rate.

    None where all that were measured hold: the knee is somewhere above them.
    """
    measured = [level for level in levels if not level.stopped_in_warmup]
    held = highest_held(levels, goodput_percent)
    return None if not measured or held == measured[-1].rate_per_s else held


def highest_held(levels: tuple[Level, ...], goodput_percent: float) -> float | None:
    """The highest rate up to which every rate held. levels: in order of rate.

    Not the highest that holds: one that holds by luck beyond one that does not is no capacity.
    """
    highest = None
    for level in levels:
        if not level.held(goodput_percent):
            break
        highest = level.rate_per_s
    return highest


def read_result(path: Path) -> Result:
    """Raises ConfigError naming file, field and what is wrong."""
    try:
        record = json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}): check the path") from error
    except ValueError as error:
        raise ConfigError(
            f"{path}: is no JSON ({error}): give a file that `modelyard bench --json` wrote"
        ) from error
    try:
        return Result.model_validate(record)
    except ValidationError as error:
        lines = describe(error, Result, record)
        raise ConfigError("\n".join(f"{path}: {line}" for line in lines)) from error
