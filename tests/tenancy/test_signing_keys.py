import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from modelyard.config.issuers import Issuer
from modelyard.tenancy.jwks import BadKeySet
from modelyard.tenancy.signing_keys import RETRY_S, JwksSource
from modelyard.testing.issuer import AUDIENCE, NAME, InMemoryIssuer
from modelyard.testing.virtual_time import run_virtual

URL = "https://issuer.test/keys"


class Published:
    """What an issuer's URL answers: a text, or an error; each fetch is counted and takes a time."""

    def __init__(self, text: bytes, takes_s: float = 0.0) -> None:
        self.text: bytes | Exception = text
        self.takes_s = takes_s
        self.fetched: list[str] = []

    async def __call__(self, url: str) -> bytes:
        self.fetched.append(url)
        await asyncio.sleep(self.takes_s)
        if isinstance(self.text, Exception):
            raise self.text
        return self.text


def config(jwks: str = URL, **changes: Any) -> Issuer:
    record = {"issuer": NAME, "audience": AUDIENCE, "jwks": jwks, "cache_s": 300.0}
    return Issuer.model_validate(record | changes)


def kids(source: JwksSource) -> set[str | None]:
    return {key.kid for key in source.keys(NAME).keys}


def running(published: Published, check: Callable[[JwksSource], Coroutine[Any, Any, None]]) -> None:
    """Run `check` beside a source that refreshes, in virtual time."""

    async def both() -> None:
        source = JwksSource(published, asyncio.get_running_loop().time)
        source.follow([config()])
        task = asyncio.create_task(source.run())
        try:
            await check(source)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    run_virtual(both())


def test_a_url_is_fetched_at_start_and_then_every_cache_s(issuer: InMemoryIssuer) -> None:
    published = Published(issuer.jwks())

    async def check(source: JwksSource) -> None:
        assert kids(source) == set()
        await asyncio.sleep(2)
        assert issuer.kid("RS256") in kids(source)
        await asyncio.sleep(290)
        assert len(published.fetched) == 1
        await asyncio.sleep(20)
        assert published.fetched == [URL] * 2

    running(published, check)


def test_a_rotated_key_replaces_the_old_one_at_the_next_refresh(
    issuer: InMemoryIssuer, rotated: InMemoryIssuer
) -> None:
    published = Published(issuer.jwks())

    async def check(source: JwksSource) -> None:
        await asyncio.sleep(2)
        before = source.generation
        published.text = rotated.jwks()
        await asyncio.sleep(305)
        assert kids(source) == {rotated.kid(one) for one in rotated.keys}
        assert source.generation == before + 1

    running(published, check)


@pytest.mark.parametrize(
    "failure", [httpx.ConnectError("down"), b"<html>", b'{"keys": []}', BadKeySet("x"), OSError()]
)
def test_a_source_that_fails_keeps_its_last_good_keys_and_says_so_once(
    issuer: InMemoryIssuer,
    rotated: InMemoryIssuer,
    failure: Exception | bytes,
    caplog: pytest.LogCaptureFixture,
) -> None:
    published = Published(issuer.jwks())

    async def check(source: JwksSource) -> None:
        await asyncio.sleep(2)
        published.text = failure
        await asyncio.sleep(1000)
        assert issuer.kid("ES256") in kids(source)
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "the last good ones stay" in caplog.text
        published.text = rotated.jwks()
        await asyncio.sleep(RETRY_S + 2)
        assert rotated.kid("ES256") in kids(source)
        assert "load again" in caplog.text

    with caplog.at_level(logging.INFO, "modelyard.tenancy"):
        running(published, check)


def test_unknown_keys_share_one_early_fetch_and_wait_a_second_at_most(
    issuer: InMemoryIssuer, rotated: InMemoryIssuer
) -> None:
    published = Published(issuer.jwks())

    async def check(source: JwksSource) -> None:
        now = asyncio.get_running_loop().time
        await asyncio.sleep(2)
        published.text, published.takes_s = rotated.jwks(), 0.5
        began = now()
        await asyncio.gather(*(source.wait_for_new(NAME) for _ in range(100)))
        assert now() - began == pytest.approx(0.5)
        assert rotated.kid("EdDSA") in kids(source)
        assert len(published.fetched) == 2

        published.takes_s = 4.0
        await asyncio.sleep(RETRY_S)
        began = now()
        await asyncio.gather(*(source.wait_for_new(NAME) for _ in range(100)))
        assert now() - began == pytest.approx(1.0)
        assert len(published.fetched) == 3

    running(published, check)


def test_made_up_keys_cause_one_fetch_in_ten_seconds(issuer: InMemoryIssuer) -> None:
    published = Published(issuer.jwks())

    async def check(source: JwksSource) -> None:
        now = asyncio.get_running_loop().time
        await asyncio.sleep(2)
        began = now()
        while now() < began + 100:
            await source.wait_for_new(NAME)
            await asyncio.sleep(0.1)
        assert len(published.fetched) <= 1 + 100 / RETRY_S + 1

    running(published, check)


def test_a_fetch_that_never_ends_is_given_up(issuer: InMemoryIssuer) -> None:
    published = Published(issuer.jwks(), takes_s=10_000)

    async def check(source: JwksSource) -> None:
        await asyncio.sleep(6)
        published.takes_s = 0
        await asyncio.sleep(RETRY_S + 2)
        assert issuer.kid("RS256") in kids(source)

    running(published, check)


def test_an_issuer_that_left_the_table_has_no_keys_and_one_that_stayed_keeps_them(
    issuer: InMemoryIssuer,
) -> None:
    published = Published(issuer.jwks())

    async def check(source: JwksSource) -> None:
        await asyncio.sleep(2)
        source.follow([config(skew_s=1.0)])
        assert issuer.kid("RS256") in kids(source)
        source.follow([config("https://issuer.test/moved")])
        assert kids(source) == set()
        source.follow([])
        await source.wait_for_new(NAME)
        assert kids(source) == set()

    running(published, check)


def test_a_file_is_read_when_the_table_arrives(issuer: InMemoryIssuer, tmp_path: Path) -> None:
    path = tmp_path / "with space.json"
    path.write_bytes(issuer.jwks())
    source = JwksSource()
    source.follow([config(path.as_uri())])
    assert issuer.kid("RS256") in kids(source)


def test_a_file_that_is_not_there_yet_is_no_reason_to_stop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = JwksSource()
    source.follow([config((tmp_path / "none.json").as_uri())])
    assert kids(source) == set()
    assert "none.json" in caplog.text


@pytest.mark.usefixtures("patient")
async def test_a_key_rotated_in_a_file_is_found_by_the_first_token_of_it(
    issuer: InMemoryIssuer, rotated: InMemoryIssuer, tmp_path: Path
) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(issuer.jwks())
    source = JwksSource()
    source.follow([config(path.as_uri())])
    path.write_bytes(rotated.jwks())
    await source.wait_for_new(NAME)
    assert kids(source) == {rotated.kid(one) for one in rotated.keys}


@contextmanager
def served(answers: list[tuple[int, bytes]]) -> Iterator[tuple[str, list[str]]]:
    """A server on a thread: it gives one answer after the other, and the last for ever."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            status, body = answers.pop(0) if len(answers) > 1 else answers[0]
            self.send_response(status)
            if status == 302:
                self.send_header("location", "/elsewhere")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/keys", asked
        finally:
            server.shutdown()


@pytest.mark.usefixtures("patient")
async def test_keys_rotate_over_http_and_outlive_a_broken_server(
    issuer: InMemoryIssuer, rotated: InMemoryIssuer
) -> None:
    answers = [(200, issuer.jwks()), (200, rotated.jwks()), (500, b"down")]
    clock = [0.0]
    with served(answers) as (url, asked):
        source = JwksSource(now=lambda: clock[0])
        source.follow([config(url)])
        for expected in (issuer, rotated, rotated):
            await source.wait_for_new(NAME)
            assert kids(source) == {expected.kid(one) for one in expected.keys}
            clock[0] += RETRY_S
        await source.aclose()
    assert asked == ["/keys"] * 3
