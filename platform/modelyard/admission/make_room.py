"""Who leaves a full queue for the one that has just been put into it."""

from __future__ import annotations

from collections.abc import Callable

from modelyard.admission.bands import LAST, rank
from modelyard.admission.ticket import Ticket
from modelyard.admission.waiting import WaitingRequests


def make_room(
    waiting: WaitingRequests,
    ticket: Ticket,
    bound: Callable[[Ticket], int],
    max_requests: int | None,
    max_tokens: int | None,
) -> tuple[Ticket, ...] | None:
    """Take out whom `ticket` pushes out. None, and all as it was before it came, if that is itself.

    A queue that is full for the last of a lower band loses that one. Full for its own band it loses
    the last of the tenant that holds most of it for its weight (longest-queue drop: a flood of one
    tenant must not refuse another's first request). A bound is that of the one who would leave:
    what only waits for a late deadline need not leave because others are in a hurry.

    max_requests, max_tokens: of the route, in this ingress. What exceeds its tokens alone may wait
    alone. At most one leaves for a bound, or as many tokens as came: shares move five times a
    second, and a bound that fell for a moment must not empty the queue.
    """
    leaving: list[tuple[Ticket, float]] = []

    def leaves(one: Ticket) -> bool:
        expires = waiting.remove(one)
        if expires is not None and one.id != ticket.id:
            leaving.append((one, expires))
        return one.id != ticket.id

    if _fits_route(waiting, ticket, leaves, max_requests, max_tokens) and _fits_bands(
        waiting, ticket, leaves, bound
    ):
        return tuple(one for one, _ in leaving)
    for one, expires in leaving:
        waiting.push(one, expires)
    return None


def _fits_route(
    waiting: WaitingRequests,
    ticket: Ticket,
    leaves: Callable[[Ticket], bool],
    max_requests: int | None,
    max_tokens: int | None,
) -> bool:
    freed_requests = freed_tokens = 0
    while True:
        requests, tokens = waiting.of_alias(ticket.alias)
        many = max_requests is not None and requests > max_requests and not freed_requests
        large = max_tokens is not None and tokens > max_tokens and requests > 1
        if not many and not (large and freed_tokens < ticket.tokens):
            return True
        last = waiting.last_of_alias(ticket.alias, ticket.tenant)
        freed_requests += 1
        freed_tokens += last.tokens
        if not leaves(last):
            return False


def _fits_bands(
    waiting: WaitingRequests,
    ticket: Ticket,
    leaves: Callable[[Ticket], bool],
    bound: Callable[[Ticket], int],
) -> bool:
    for band in range(rank(ticket.band), LAST + 1):
        last = waiting.last_of_band(band, ticket.tenant)
        if last is not None and waiting.through(band) > bound(last) and not leaves(last):
            return False
    return True
