"""A workload as a list of requests: when, from which stream, how long."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from modelyard.workload.arrivals import Arrivals
from modelyard.workload.mix import Stream, Workload
from modelyard.workload.trace import Recorded, Traces

DEFAULT_INPUT_TOKENS: Final = 128
DEFAULT_OUTPUT_TOKENS: Final = 64


@dataclass(frozen=True, slots=True)
class Planned:
    """at_s: the intended send time, from the start of the run. number: from 0, in order of time."""

    number: int
    at_s: float
    stream: Stream
    input_tokens: int
    output_tokens: int


def plan(workload: Workload, traces: Traces, duration_s: float) -> Iterator[Planned]:
    """What to send before `duration_s`, in order of time. The same seed gives the same plan.

    Times, choices and sizes have generators of their own, so that another length distribution
    does not move the arrivals, nor another stream those of its neighbours.
    """
    sources = []
    sharing = [stream for stream in workload.streams if stream.arrivals is None]
    if workload.arrivals is not None:
        sources.append(_source(workload, "", workload.arrivals, sharing, traces))
    for stream in workload.streams:
        if stream.arrivals is not None:
            sources.append(_source(workload, stream.name, stream.arrivals, [stream], traces))
    merged = heapq.merge(*sources, key=lambda event: event[0])
    for number, (at_s, stream, sizes) in enumerate(merged):
        if at_s >= duration_s:
            return
        yield Planned(number, at_s, stream, *sizes)


_Event = tuple[float, Stream, tuple[int, int]]


def _source(
    workload: Workload, name: str, arrivals: Arrivals, streams: Sequence[Stream], traces: Traces
) -> Iterator[_Event]:
    times, choices, sizes = (
        random.Random(f"{workload.seed}:{name}:{purpose}") for purpose in ("times", "who", "size")
    )
    cumulated = list(itertools.accumulate(stream.weight for stream in streams))
    recorded: Sequence[Recorded | None] = ()
    if arrivals.replay is not None:
        recorded = traces[arrivals.replay.file].since(arrivals.replay.from_s).requests
    each = itertools.chain(recorded, itertools.repeat(None))
    for at_s, row in zip(arrivals.process.times(times, traces), each, strict=False):
        (stream,) = choices.choices(streams, cum_weights=cumulated)
        yield at_s, stream, _sizes(stream, row, sizes, traces)


def _sizes(
    stream: Stream, row: Recorded | None, rng: random.Random, traces: Traces
) -> tuple[int, int]:
    """Input and output tokens: what the stream says, else what was recorded, else the default."""
    if stream.sizes_trace is not None:
        row = rng.choice(traces[stream.sizes_trace].requests)
    given = row or Recorded(0.0, DEFAULT_INPUT_TOKENS, DEFAULT_OUTPUT_TOKENS)
    drawn_in, drawn_out = (
        lengths.draw(rng, traces) if lengths is not None else None
        for lengths in (stream.input_tokens, stream.output_tokens)
    )
    return drawn_in or max(1, given.input_tokens), drawn_out or max(1, given.output_tokens)
