"""How many retries a caller may add to the load that it sends anyway."""

from __future__ import annotations

from typing import Final

RATIO: Final = 0.1
RESERVE: Final = 50.0  # retries at once: above the requests that one dying replica holds


class RetryBudget:
    """Retries stay under `ratio` of the requests, plus a reserve. Finagle's retry budget.

    Each request pays in `ratio`, a retry costs 1, and at most the reserve is kept. There is no
    clock in it: a service that nobody calls earns nothing back, since a replica that dies under
    each of the few calls it gets must not be fed a second one for every call.
    """

    def __init__(self, ratio: float = RATIO, reserve: float = RESERVE) -> None:
        self._ratio = ratio
        self._reserve = self._level = reserve

    def request(self) -> None:
        """Count one request, not its retries."""
        self._level = min(self._reserve, self._level + self._ratio)

    def retry(self) -> bool:
        """Whether a retry may be sent; if so it is paid for."""
        if self._level < 1:
            return False
        self._level -= 1
        return True
