"""What a request says about the rollout of its route: its conversation's pin, and its label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modelyard.config.routes import Route
from modelyard.config.table import Table
from modelyard.contract.headers import CONVERSATION_PIN, TRAFFIC_LABEL
from modelyard.ingress.prepared import Ask
from modelyard.routing.pins import (
    FIRST_TURN,
    Holder,
    Pin,
    Turn,
    goes_on,
    pins_conversations,
    turn_of,
    write_pin,
)
from modelyard.routing.resolve import Target


class Pinning:
    """Reads and writes the pins of one ingress process."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def turn(self, ask: Ask, body: Mapping[str, Any], table: Table, holder: Holder) -> Turn:
        """What the request brings from the turns before it."""
        text, route = ask.headers.get(CONVERSATION_PIN), table.routes.get(holder.alias)
        pins = pins_conversations(route)
        if route is None or (text is None and not pins):
            return FIRST_TURN
        return turn_of(text, holder, self._secret, goes_on=pins and goes_on(ask.operation, body))

    def pin(self, target: Target, holder: Holder) -> str:
        """For the next turn; "" where a version answers only in place of the conversation's own."""
        plan = target.route.rollout
        if plan is None or not holder.conversation or not pins_conversations(target.route):
            return ""
        if "@" in target.alias or target.missing or target.required or target.why == "fallback":
            return ""
        return write_pin(Pin(target.version, plan.id), holder, self._secret)


def label_of(headers: Mapping[str, str], route: Route) -> str:
    """What kind of request its client says it is, where the plan asks for that kind."""
    if route.rollout is None or not route.rollout.labels:
        return ""
    label = headers.get(TRAFFIC_LABEL, "")
    return label if label in route.rollout.labels else ""
