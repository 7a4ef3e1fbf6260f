"""Those who listen to answers on their way: shadow traffic and the judge. Never at their cost."""

from __future__ import annotations

import logging
from typing import Protocol

from modelyard.contract.envelope import Item
from modelyard.ingress.fault_kind import kind_of
from modelyard.ingress.prepared import Prepared, Taps

log = logging.getLogger("modelyard.ingress")


class AnswerTap(Protocol):
    """Listens to one request. Both methods return at once: they are called on the path of it."""

    def item(self, item: Item) -> None:
        """An item that its caller gets next, the last one of a whole answer too."""
        ...

    def ended(self, prepared: Prepared) -> None:
        """Once, when its books have closed, however it ended: `prepared.record` is complete."""
        ...


class AnswerObserver(Protocol):
    """Decides at dispatch whether it listens."""

    def wants(self, prepared: Prepared) -> AnswerTap | None:
        """A tap, or None. Asked once, when the request has its slot and is first sent.

        Another arm may still answer in place of `prepared.target`: look again in `ended`.
        """
        ...

    def close(self) -> None:
        """The ingress ends: cut what is under way. From any thread."""
        ...


def taps_of(observers: tuple[AnswerObserver, ...], prepared: Prepared) -> Taps | None:
    """What all observers together want of a request; None for nothing."""
    taps = tuple(tap for one in observers if (tap := _wanted(one, prepared)) is not None)
    return GuardedTaps(taps) if taps else None


def _wanted(observer: AnswerObserver, prepared: Prepared) -> AnswerTap | None:
    try:
        return observer.wants(prepared)
    except Exception as error:  # noqa: BLE001  an edge: who only watches must fail no request
        request_id = prepared.record.request_id
        log.error("an observer could not look at %s: %s", request_id, kind_of(error))
        return None


class GuardedTaps:
    """Taps whose failures are logged and reach no request; one that failed hears no more."""

    def __init__(self, taps: tuple[AnswerTap, ...]) -> None:
        self._taps = taps

    def item(self, item: Item) -> None:
        for tap in self._taps:
            try:
                tap.item(item)
            except Exception as error:  # noqa: BLE001  an edge, as above
                log.error("a tap failed, and hears no more: %s", kind_of(error))
                self._taps = tuple(one for one in self._taps if one is not tap)

    def ended(self, prepared: Prepared) -> None:
        for tap in self._taps:
            try:
                tap.ended(prepared)
            except Exception as error:  # noqa: BLE001  an edge, as above
                request_id = prepared.record.request_id
                log.error("a tap failed at the end of %s: %s", request_id, kind_of(error))
