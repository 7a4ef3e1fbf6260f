"""Header names of the wire, and the request id."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Mapping
from itertools import islice
from typing import Final

REQUEST_ID: Final = "X-Request-Id"
MODEL_VERSION: Final = "X-Model-Version"
ROLLOUT_ARM: Final = "X-Rollout-Arm"
IGNORED_FIELDS: Final = "X-Ignored-Fields"
DEGRADED: Final = "X-Degraded"
CONVERSATION_ID: Final = "X-Conversation-Id"
CONVERSATION_PIN: Final = "X-Conversation-Pin"
PIN_IGNORED: Final = "X-Conversation-Pin-Ignored"
TRAFFIC_LABEL: Final = "X-Traffic-Label"
DEBUG: Final = "X-Modelyard-Debug"
ROUTE: Final = "X-Modelyard-Route"
DEADLINE_MS: Final = "X-Deadline-Ms"
STAINLESS_READ_TIMEOUT: Final = "x-stainless-read-timeout"
SHOULD_RETRY: Final = "x-should-retry"

_DEBUGGERS: Final = frozenset(("admin", "evaluate"))
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


def request_id_of(headers: Mapping[str, str]) -> str:
    """The caller's id when it is well-formed, else a minted one. For correlation only: unique, and
    guessable, which spares each request a system call."""
    given = headers.get(REQUEST_ID, "")
    return given if _REQUEST_ID.fullmatch(given) else f"req_{random.getrandbits(96):024x}"


def traceparent_of(headers: Mapping[str, str]) -> str | None:
    given = headers.get("traceparent", "")
    return given if _TRACEPARENT.fullmatch(given) else None


def may_debug(headers: Mapping[str, str], roles: Collection[str]) -> bool:
    """Whether the answer says why it came from where it came. Only to keys that may know."""
    return headers.get(DEBUG) == "1" and not _DEBUGGERS.isdisjoint(roles)


def listed(fields: tuple[str, ...]) -> str:
    """Names a caller wrote, for a header."""
    return ", ".join(plain_names(fields))


def plain_names(fields: tuple[str, ...]) -> tuple[str, ...]:
    """Those safe for a header and the log: plain words only, at most 32."""
    plain = (name for name in fields if re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name))
    return tuple(islice(plain, 32))
