"""From flags, and perhaps a file, to what is run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from modelyard.bench.shorthand import parse_lengths, parse_rates, parse_steps
from modelyard.config.table import describe
from modelyard.contract.errors import ConfigError
from modelyard.workload.load import load_workload
from modelyard.workload.mix import SCHEMA, Workload
from modelyard.workload.slo import Slo
from modelyard.workload.trace import Traces, read_traces

DEFAULT_DURATION_S: Final = 60.0
MAX_WARMUP_S: Final = 10.0
WARMUP_SHARE: Final = 1 / 6


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags that describe the load. None: not given."""

    workload: Path | None = None
    route: str | None = None
    model: str | None = None
    rate: str | None = None
    arrivals: str | None = None
    steps: str | None = None
    replay: str | None = None
    input_tokens: str | None = None
    output_tokens: str | None = None
    stream: bool | None = None
    items: int | None = None
    extra_body: str | None = None
    deadline_ms: int | None = None
    slo: str | None = None
    seed: int | None = None
    duration_s: float | None = None
    warmup_s: float | None = None


@dataclass(frozen=True, slots=True)
class Load:
    workload: Workload
    traces: Traces
    rates_per_s: tuple[float, ...]
    duration_s: float
    warmup_s: float


_OF_ONE_STREAM: Final = (
    "route",
    "model",
    "arrivals",
    "steps",
    "replay",
    "input_tokens",
    "output_tokens",
    "stream",
    "items",
    "extra_body",
    "deadline_ms",
)


def load_of(flags: Flags) -> Load:
    """Raises ConfigError, one sentence for each fault."""
    if flags.workload is not None:
        workload, traces = _from_file(flags, flags.workload)
    else:
        workload = _from_flags(flags)
        traces = read_traces(workload.trace_files(), Path())
    workload = workload.model_copy(update=_overrides(flags))
    mean_per_s = workload.mean_per_s(traces)
    rates = parse_rates(flags.rate) if flags.rate else (mean_per_s,)
    _check_reachable(workload, traces, rates[-1])
    shaped = workload.length_s(traces)
    duration_s = flags.duration_s or shaped or DEFAULT_DURATION_S
    warmup_s = flags.warmup_s
    if warmup_s is None:  # one load all along has a beginning to leave out, a shape is the thing
        steady = shaped is None or workload.duration_s is not None
        warmup_s = min(MAX_WARMUP_S, duration_s * WARMUP_SHARE) if steady else 0.0
    if warmup_s >= duration_s:
        raise ConfigError(
            f"the warm-up of {warmup_s:g} s leaves nothing of {duration_s:g} s to measure: "
            "raise --duration or lower --warmup"
        )
    return Load(workload, traces, rates, duration_s, warmup_s)


def _check_reachable(workload: Workload, traces: Traces, rate_per_s: float) -> None:
    """Before the run: a shape whose mean is that rate may have a step beyond all bounds."""
    try:
        workload.at(rate_per_s, traces)
    except ValidationError as error:
        raise ConfigError(
            f"a mean of {rate_per_s:g}/s needs a step that is out of bounds "
            f"({error.errors()[0]['msg']}): lower --rate"
        ) from error


def _overrides(flags: Flags) -> dict[str, Any]:
    update: dict[str, Any] = {}
    if flags.slo is not None:
        update["slo"] = Slo.parse(flags.slo)
    if flags.seed is not None:
        update["seed"] = flags.seed
    return update


def _from_file(flags: Flags, path: Path) -> tuple[Workload, Traces]:
    for name in _OF_ONE_STREAM:
        if getattr(flags, name) is not None:
            flag = "--" + name.replace("_", "-")
            raise ConfigError(f"{flag} and --workload exclude each other: write it in {path}")
    return load_workload(path)


def _from_flags(flags: Flags) -> Workload:
    for name in ("route", "model"):
        if getattr(flags, name) is None:
            raise ConfigError(f"--{name} is missing: give it, or a --workload file")
    record = {
        "schema": SCHEMA,
        "arrivals": _arrivals(flags),
        "streams": [_stream(flags)],
    }
    try:
        return Workload.model_validate(record)
    except ValidationError as error:
        raise ConfigError("; ".join(describe(error, Workload, record))) from error


def _stream(flags: Flags) -> dict[str, Any]:
    stream: dict[str, Any] = {"name": flags.route, "route": flags.route, "model": flags.model}
    for name in ("stream", "items", "deadline_ms"):
        if getattr(flags, name) is not None:
            stream[name] = getattr(flags, name)
    if flags.input_tokens is not None:
        stream["input_tokens"] = parse_lengths("--input-tokens", flags.input_tokens, "input_tokens")
    if flags.output_tokens is not None:
        given = parse_lengths("--output-tokens", flags.output_tokens, "output_tokens")
        stream["output_tokens"] = given
    if flags.extra_body is not None:
        stream["extra_body"] = _json_object(flags.extra_body)
    return stream


def _arrivals(flags: Flags) -> Mapping[str, Any]:
    shapes = [name for name in ("steps", "replay") if getattr(flags, name) is not None]
    if len(shapes) + (flags.arrivals is not None) > 1:
        raise ConfigError("--steps, --replay and --arrivals exclude each other: give one")
    if flags.steps is not None:
        return {"steps": {"steps": parse_steps(flags.steps)}}
    if flags.replay is not None:
        return {"replay": {"file": flags.replay}}
    if flags.rate is None:
        raise ConfigError("nothing says how much to send: give --rate, --steps or --replay")
    return {flags.arrivals or "poisson": {"rate_per_s": parse_rates(flags.rate)[0]}}


def _json_object(text: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"--extra-body is no JSON ({error}): give an object") from error
    if not isinstance(record, dict):
        raise ConfigError('--extra-body must be a JSON object: {"min_tokens": 16}')
    return record
