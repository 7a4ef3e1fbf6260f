"""The whole of a load: streams of requests, each with its caller, route and sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from modelyard.config.frozen import Frozen, Seconds
from modelyard.workload.arrivals import Arrivals
from modelyard.workload.lengths import Lengths
from modelyard.workload.slo import Slo
from modelyard.workload.trace import MAX_TOKENS, Traces

SCHEMA = "modelyard/workload/v1"

RouteName = Literal[
    "generate",
    "chat",
    "completions",
    "responses",
    "embeddings",
    "rerank",
    "classify",
    "score",
]
Label = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]


class Stream(Frozen):
    """Requests of one kind from one caller.

    tenant: which of the keys to send; None: the key given without a name. priority: a label to
    group figures by (the platform takes the band from the key). weight: its part of the workload's
    arrivals, unless it has its own. input_tokens: of each text, in words (about a token each).
    items: texts of one request to embeddings and classify, documents of rerank and score.
    sizes_trace: a recorded trace to draw both sizes from, pairwise. shared_prefix_tokens: of the
    input, the same for all requests (a system prompt). extra_body: further fields of the body, for
    what peers call otherwise.
    """

    name: Label
    route: RouteName
    model: str = Field(min_length=1)
    tenant: Label | None = None
    priority: Label | None = None
    weight: float = Field(default=1.0, gt=0, le=1e6)
    arrivals: Arrivals | None = None
    input_tokens: Lengths | None = None
    output_tokens: Lengths | None = None
    sizes_trace: str | None = Field(default=None, min_length=1)
    stream: bool = True
    items: int = Field(default=1, ge=1, le=10_000)
    shared_prefix_tokens: int = Field(default=0, ge=0, le=MAX_TOKENS)
    deadline_ms: int | None = Field(default=None, ge=1)
    slo: Slo | None = None
    extra_body: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_source_of_sizes(self) -> Self:
        if self.sizes_trace is not None and (self.input_tokens or self.output_tokens):
            raise ValueError("sizes_trace gives both sizes: remove it, or the other two")
        return self

    @property
    def streamed(self) -> bool:
        """Whether its answers come as events."""
        return self.stream and self.route in ("generate", "chat", "completions", "responses")


class Workload(Frozen):
    """duration_s: None where the arrivals say it (steps, replay)."""

    # By its own name too: a workload is also made from flags, in Python.
    model_config = ConfigDict(populate_by_name=True)

    schema_: Literal["modelyard/workload/v1"] = Field(alias="schema")
    seed: int = 0
    duration_s: Seconds | None = None
    arrivals: Arrivals | None = None
    slo: Slo = Slo()
    streams: tuple[Stream, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [stream.name for stream in self.streams]
        if len(set(names)) != len(names):
            raise ValueError("two streams have one name: their figures could not be told apart")
        sharing = [stream.name for stream in self.streams if stream.arrivals is None]
        if sharing and self.arrivals is None:
            raise ValueError(f"stream {sharing[0]} has no arrivals: add them there or at the top")
        if not sharing and self.arrivals is not None:
            raise ValueError("every stream has arrivals of its own: remove those at the top")
        return self

    def processes(self) -> Iterator[Arrivals]:
        for arrivals in (self.arrivals, *(stream.arrivals for stream in self.streams)):
            if arrivals is not None:
                yield arrivals

    def trace_files(self) -> set[str]:
        """The files to read before anything can be drawn."""
        files = {each.replay.file for each in self.processes() if each.replay is not None}
        for stream in self.streams:
            for lengths in (stream.input_tokens, stream.output_tokens):
                if lengths is not None and lengths.trace is not None:
                    files.add(lengths.trace.file)
            if stream.sizes_trace is not None:
                files.add(stream.sizes_trace)
        return files

    def mean_per_s(self, traces: Traces) -> float:
        return math.fsum(each.process.mean_per_s(traces) for each in self.processes())

    def length_s(self, traces: Traces) -> float | None:
        """duration_s, else that of its longest arrivals, None if any goes on for ever."""
        if self.duration_s is not None:
            return self.duration_s
        lengths = [each.process.length_s(traces) for each in self.processes()]
        known = [length for length in lengths if length is not None]
        return max(known) if len(known) == len(lengths) else None

    def at(self, rate_per_s: float, traces: Traces) -> Workload:
        """The same mix and shape at another total rate; every stream keeps its part of it."""
        factor = rate_per_s / self.mean_per_s(traces)

        def scaled(arrivals: Arrivals | None) -> Arrivals | None:
            if arrivals is None:
                return None
            return arrivals.at(arrivals.process.mean_per_s(traces) * factor, traces)

        streams = tuple(
            stream.model_copy(update={"arrivals": scaled(stream.arrivals)})
            for stream in self.streams
        )
        update = {"arrivals": scaled(self.arrivals), "streams": streams}
        return self.model_copy(update=update)
