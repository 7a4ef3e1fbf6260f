"""Times in an HDR histogram: fine buckets that can be added, as percentiles cannot."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Final, Self

import numpy as np
from hdrh.histogram import HdrHistogram

from modelyard.contract.errors import ConfigError

LONGEST_US: Final = 3_600_000_000  # an hour; what takes longer is counted as that
FINE: Final = 3  # significant digits: within 0.1 %
COARSE: Final = 2  # of the many that a timeline needs: a tenth of the memory


class LatencyHistogram:
    """Durations from 1 microsecond to an hour."""

    def __init__(self, digits: int = FINE) -> None:
        self._histogram = HdrHistogram(1, LONGEST_US, digits)

    def record(self, seconds: float) -> None:
        self._histogram.record_value(min(LONGEST_US, max(1, round(seconds * 1e6))))

    def add(self, other: LatencyHistogram) -> None:
        self._histogram.add(other._histogram)

    @property
    def count(self) -> int:
        count: int = self._histogram.get_total_count()
        return count

    def percentiles_ms(self, *percents: float) -> list[float | None]:
        """For each, the smallest time that so many percent do not exceed (nearest rank).

        100 is the longest. None where nothing was recorded.
        """
        if not self.count:
            return [None] * len(percents)
        values, counts = zip(*self._buckets(), strict=True)
        cumulated = list(itertools.accumulate(counts))
        # Rounded first: 99.9 % of 1000 is 999.0000000000001 in binary.
        ranks = [math.ceil(round(percent / 100 * self.count, 6)) for percent in percents]
        places = np.searchsorted(cumulated, [max(1, rank) for rank in ranks])
        return [values[place] / 1000 for place in places]

    def mean_ms(self) -> float | None:
        if not self.count:
            return None
        return sum(value_us * count for value_us, count in self._buckets()) / self.count / 1000

    def cumulated(self) -> Iterator[tuple[float, float]]:
        """(ms, share of all that took no longer) for each bucket that holds something."""
        seen = 0
        for value_us, count in self._buckets():
            seen += count
            yield value_us / 1000, seen / self.count

    def _buckets(self) -> Iterator[tuple[int, int]]:
        """(highest value in microseconds, count) of each bucket that holds something, rising.

        hdrh's own iterators step through the 23 000 buckets in Python: 0.2 s for one mean.
        """
        counts = np.ctypeslib.as_array(self._histogram.counts)
        for index in np.flatnonzero(counts).tolist():
            value_us = self._histogram.get_value_from_index(index)
            yield self._histogram.get_highest_equivalent_value(value_us), int(counts[index])

    def encode(self) -> str:
        """HdrHistogram's own compressed format in base64, which its other tools read."""
        text: bytes = self._histogram.encode()
        return text.decode("ascii")

    @classmethod
    def decode(cls, text: str, digits: int = FINE) -> Self:
        """Raises ConfigError for what is no histogram."""
        histogram = cls(digits)
        try:
            histogram._histogram.decode_and_add(text.encode("ascii"))
        except Exception as error:  # the decoder of a foreign file fails in many ways
            raise ConfigError(
                f"the result holds no HDR histogram where one belongs ({error}): run it again"
            ) from error
        return histogram
