"""The text of a JWKS, from a file or over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx

from modelyard.tenancy.jwks import MAX_JWKS_BYTES, BadKeySet


class HttpFetch:
    """GET of a JWKS with httpx: bounded in size, and no redirects, which would move the trust.

    Without a time limit of its own: the caller's bounds all of it, this one would bound each part.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._transport = transport
        self._client: httpx.AsyncClient | None = None

    async def __call__(self, url: str) -> bytes:
        """Raises BadKeySet for another answer than 200, and httpx's errors."""
        if self._client is None:
            # On a thread: reading the certificates of the machine takes 30 ms.
            self._client = await asyncio.to_thread(
                httpx.AsyncClient, transport=self._transport, timeout=None
            )
        async with self._client.stream("GET", url) as answer:
            if answer.status_code != 200:
                raise BadKeySet(f"it answered {answer.status_code}")
            text = bytearray()
            async for part in answer.aiter_bytes():
                text += part
                if len(text) > MAX_JWKS_BYTES:
                    raise BadKeySet(f"is larger than {MAX_JWKS_BYTES} bytes")
        return bytes(text)

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None


def read_file(uri: str) -> bytes:
    """One byte over the limit at most, for parse_jwks to refuse."""
    with Path(unquote(urlsplit(uri).path)).open("rb") as file:
        return file.read(MAX_JWKS_BYTES + 1)
