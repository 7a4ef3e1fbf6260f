"""The x-ratelimit headers, in OpenAI's names and formats."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from modelyard.quota.bucket import RATE, UNITS
from modelyard.quota.figures import Direction, Figures


@dataclass(frozen=True, slots=True)
class Gauge:
    """One bucket as its tenant sees it. limit per minute; reset_s until our part is full.

    remaining is a lower bound: the other ingresses hold some too. reset_s is at most what the whole
    bucket takes, and a debt, since parts move to where they are used.
    """

    limit: int
    remaining: int
    reset_s: float

    @classmethod
    def of(cls, whole: Figures, part: Figures, level: int) -> Gauge:
        """From the bucket's figures, and the figures and the level (in units) of our part."""
        missing = max(0, part.burst - level)
        longest = (whole.burst - min(0, level)) / max(1, whole.rate)
        reset_s = min(missing / max(1, part.rate), longest) / 1e6
        return cls(whole.rate // RATE, max(0, level // UNITS), reset_s)


def rate_limit_headers(gauges: Mapping[Direction, Gauge]) -> list[tuple[str, str]]:
    """`tokens` is the bucket that is closest to its end; a direction without limit has none."""
    named = {f"{one}-tokens": gauges[one] for one in ("input", "output") if one in gauges}
    if named:
        named["tokens"] = min(named.values(), key=lambda one: one.remaining / one.limit)
    if "requests" in gauges:
        named["requests"] = gauges["requests"]
    return [
        (f"x-ratelimit-{what}-{name}", value)
        for name, gauge in named.items()
        for what, value in (
            ("limit", str(gauge.limit)),
            ("remaining", str(gauge.remaining)),
            ("reset", duration(gauge.reset_s)),
        )
    ]


def duration(seconds: float) -> str:
    """`12ms`, `1s`, `6m0s`, `1h0m0s`; rounded up, because to wait too short is to be refused."""
    ms = math.ceil(seconds * 1000 - 1e-6)
    if ms < 1000:
        return f"{ms}ms" if ms > 0 else "0s"
    minutes, left_s = divmod(-(-ms // 1000), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{left_s}s"
    return f"{minutes}m{left_s}s" if minutes else f"{left_s}s"
