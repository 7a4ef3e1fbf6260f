"""Where issuers publish their keys: read at start, refreshed aside, never fetched by a request."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from modelyard.config.issuers import Issuer
from modelyard.tenancy.jwks import BadKeySet, KeySet, parse_jwks
from modelyard.tenancy.jwks_fetch import HttpFetch, read_file

log = logging.getLogger("modelyard.tenancy")

TICK_S: Final = 1.0
LOAD_WITHIN_S: Final = 5.0
RETRY_S: Final = 10.0  # after a failure, and between two early loads for unknown keys
WAIT_FOR_KEY_S: Final = 1.0

Load = Callable[[str], Awaitable[bytes]]
_NONE: Final = KeySet()


@dataclass(eq=False, slots=True)
class _Source:
    """One issuer's keys. Times are of the clock given to JwksSource."""

    issuer: Issuer
    keys: KeySet = _NONE
    text: bytes = b""
    due_s: float = float("-inf")
    early_s: float = float("-inf")
    failing: bool = False
    loading: asyncio.Task[None] | None = None


class JwksSource:
    """The key sets of the table's issuers. One per ingress process; `run` keeps them fresh.

    A source that fails keeps its last good keys: a token of them proves what it proved before, and
    an issuer's outage must not become ours. `generation` grows with every change of any key.
    """

    def __init__(
        self, fetch: Load | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        """`fetch` gets what an http(s) URL holds; one with httpx if left out."""
        self._own = None if fetch is not None else HttpFetch()
        self._fetch: Load = fetch or self._own  # type: ignore[assignment]
        self._now = now
        self._sources: dict[str, _Source] = {}
        self.generation = 0

    def follow(self, issuers: Sequence[Issuer]) -> None:
        """Serve a table's issuers from now on. Files are read here, URLs by `run`."""
        before, self._sources = self._sources, {}
        for issuer in issuers:
            source = before.get(issuer.issuer)
            if source is None or source.issuer.jwks != issuer.jwks:
                source = _Source(issuer)
            source.issuer = issuer
            self._sources[issuer.issuer] = source
            if not source.keys.keys and issuer.is_file:
                self._take_file(source)
        self.generation += 1

    def keys(self, issuer: str) -> KeySet:
        """The keys last seen; none for an issuer that was never reached, or that nobody follows."""
        source = self._sources.get(issuer)
        return _NONE if source is None else source.keys

    async def wait_for_new(self, issuer: str) -> None:
        """For a key that is not known: look again, all waiting requests together, for a second.

        At most one early load in 10 s and issuer, so that made-up keys cannot make this process
        hammer an issuer; a request after it is refused at once.
        """
        source = self._sources.get(issuer)
        if source is None:
            return
        if source.loading is None and self._now() - source.early_s >= RETRY_S:
            source.early_s = self._now()
            self._start(source)
        if source.loading is not None:
            # Not wait_for: it would cancel the load that the others wait for.
            await asyncio.wait({source.loading}, timeout=WAIT_FOR_KEY_S)

    async def run(self) -> None:
        """Refresh for ever: each issuer's keys every `cache_s`, and sooner after a failure."""
        async with aclosing(self):
            while True:
                for source in self._sources.values():
                    if source.loading is None and source.due_s <= self._now():
                        self._start(source)
                await asyncio.sleep(TICK_S)

    async def aclose(self) -> None:
        for source in self._sources.values():
            if source.loading is not None:
                source.loading.cancel()
        if self._own is not None:
            await self._own.aclose()

    def _start(self, source: _Source) -> None:
        source.loading = asyncio.create_task(self._load(source))

    async def _load(self, source: _Source) -> None:
        jwks = source.issuer.jwks
        try:
            async with asyncio.timeout(LOAD_WITHIN_S):
                if source.issuer.is_file:
                    text = await asyncio.to_thread(read_file, jwks)
                else:
                    text = await self._fetch(jwks)
            self._take(source, text)
        except Exception as error:  # noqa: BLE001  the edge of a background task
            self._failed(source, repr(error))
        finally:
            source.loading = None

    def _take_file(self, source: _Source) -> None:
        """Before the first request, which would otherwise find a table without keys."""
        try:
            text = read_file(source.issuer.jwks)
        except OSError as error:
            self._failed(source, repr(error))
        else:
            self._take(source, text)

    def _take(self, source: _Source, text: bytes) -> None:
        """Adopt what was loaded, unless it is no key set: that leaves everything as it was."""
        if text != source.text:
            try:
                source.keys = parse_jwks(text)
            except BadKeySet as error:
                self._failed(source, str(error))
                return
            source.text = text
            self.generation += 1
        source.due_s = self._now() + source.issuer.cache_s
        if source.failing:
            log.warning("the keys of the issuer %s load again", source.issuer.issuer)
        source.failing = False

    def _failed(self, source: _Source, why: str) -> None:
        source.due_s = self._now() + min(source.issuer.cache_s, RETRY_S)
        if not source.failing:
            log.warning(
                "the keys of the issuer %s do not load from %s, the last good ones stay: %s",
                source.issuer.issuer,
                source.issuer.jwks,
                why,
            )
        source.failing = True
