"""Turns of conversations with the generator's route, as a client has them that keeps pins."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.integration.rollout_users_canaries import ASSISTANT

TOKENS: Final = 4
TRIES: Final = 60
FIRST: Final = ({"role": "user", "content": "Say a word."},)
LATER: Final = (
    *FIRST,
    {"role": "assistant", "content": "Word."},
    {"role": "user", "content": "Another one."},
)


@dataclass(frozen=True, slots=True)
class Said:
    """An answer. ignored: why the pin that was sent was not followed, "" for none."""

    conversation: str
    arm: str
    version: str
    pin: str
    ignored: str
    text: str


class Chats:
    """What one tenant says. Fails the test for any answer but 200."""

    def __init__(self, platform: Any, key: str) -> None:
        self._platform = platform
        self._key = key

    def say(
        self,
        messages: tuple[Mapping[str, str], ...] = FIRST,
        conversation: str = "",
        pin: str | None = None,
    ) -> Said:
        """On a connection of its own, so that both ingresses get their share. Without a name it is
        a new conversation."""
        conversation = conversation or f"c-{uuid.uuid4().hex}"
        headers = {"X-Conversation-Id": conversation}
        if pin is not None:
            headers["X-Conversation-Pin"] = pin
        body = {"model": ASSISTANT, "messages": list(messages), "max_tokens": TOKENS}
        with self._platform.client(self._key) as client:
            answer = client.post("/v1/chat/completions", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        return Said(
            conversation,
            answer.headers["x-rollout-arm"],
            answer.headers["x-model-version"],
            answer.headers.get("x-conversation-pin", ""),
            answer.headers.get("x-conversation-pin-ignored", ""),
            answer.json()["choices"][0]["message"]["content"],
        )

    def drawn(self, arm: str) -> Said:
        """The first turn of a conversation that the draw sends to an arm."""
        for _ in range(TRIES):
            if (said := self.say()).arm == arm:
                return said
        raise AssertionError(f"of {TRIES} conversations none was drawn to {arm}")
