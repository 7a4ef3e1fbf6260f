from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest

from modelyard.tenancy.jwks import MAX_JWKS_BYTES, BadKeySet, parse_jwks
from modelyard.tenancy.jwks_fetch import HttpFetch, read_file

URL = "https://issuer.test/keys"


async def fetched(answer: Callable[[httpx.Request], httpx.Response]) -> bytes:
    fetch = HttpFetch(httpx.MockTransport(answer))
    try:
        return await fetch(URL)
    finally:
        await fetch.aclose()


async def test_a_whole_answer_is_given_as_it_is() -> None:
    assert await fetched(lambda request: httpx.Response(200, content=b"keys")) == b"keys"


async def test_a_redirect_is_not_followed() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(302, headers={"location": "https://evil.test/keys"})

    with pytest.raises(BadKeySet, match="302"):
        await fetched(answer)
    assert asked == [URL]


@pytest.mark.parametrize("status", [204, 404, 500])
async def test_another_status_than_200_holds_no_keys(status: int) -> None:
    with pytest.raises(BadKeySet, match=str(status)):
        await fetched(lambda request: httpx.Response(status))


async def test_an_answer_without_end_is_given_up_at_the_bound() -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 65_536
            yield b" " * 65_536

    with pytest.raises(BadKeySet, match="larger"):
        await fetched(lambda request: httpx.Response(200, content=endless()))
    assert sent <= MAX_JWKS_BYTES + 2 * 65_536


def test_of_a_large_file_no_more_is_read_than_shows_that_it_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "with space.json"
    path.write_bytes(b" " * (MAX_JWKS_BYTES * 2))
    text = read_file(path.as_uri())
    assert len(text) == MAX_JWKS_BYTES + 1
    with pytest.raises(BadKeySet, match="larger"):
        parse_jwks(text)
