"""An ingress that follows a script, on the clock of the running loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import pytest

from modelyard.contract.envelope import Usage
from modelyard.contract.reply import Failure, Reply

Step = bytes | Reply | Failure | BaseException | float


@dataclass
class Asked:
    """One attempt as the ingress saw it. `closed`: the caller left before its end."""

    key: str
    operation: str
    body: bytes
    headers: dict[str, str]
    at_s: float
    closed: bool = False


@dataclass
class ScriptedIngress:
    """Plays one script per attempt; a float is a time to wait, an exception is raised.

    A script that has run out is played again from the first one.
    """

    scripts: list[Sequence[Step]]
    asked: list[Asked] = field(default_factory=list)
    under_way: int = 0
    most_under_way: int = 0

    async def ask(
        self, key: str, operation: str, body: bytes, headers: dict[str, str]
    ) -> Reply | Failure:
        async with aclosing(self.ask_stream(key, operation, body, headers)) as items:
            item = await anext(items)
        assert not isinstance(item, bytes)
        return item

    async def ask_stream(
        self, key: str, operation: str, body: bytes, headers: dict[str, str]
    ) -> AsyncGenerator[bytes | Reply | Failure]:
        script = self.scripts[len(self.asked) % len(self.scripts)]
        asked = Asked(key, operation, body, headers, asyncio.get_running_loop().time())
        self.asked.append(asked)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        asked.closed = True
        try:
            for step in script:
                if isinstance(step, float):
                    await asyncio.sleep(step)
                elif isinstance(step, BaseException):
                    raise step
                else:
                    asked.closed = isinstance(step, bytes)
                    yield step
        finally:
            self.under_way -= 1


@pytest.fixture
def scripted() -> type[ScriptedIngress]:
    return ScriptedIngress


@pytest.fixture
def reply() -> Reply:
    return Reply(b"{}", "answer-1", "gen@1.0.0", "stable", Usage(3, 2, "length"))
