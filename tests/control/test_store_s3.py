"""The S3 store, with boto3 over HTTP against a server that knows conditional writes."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("boto3")

from modelyard.control.journal import Fenced, Journal
from modelyard.control.store import Raced, Row, StoreFailed
from modelyard.control.store_s3 import S3Store


def _neighbour(name: str) -> ModuleType:
    """A module beside this file: tests are no package."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


s3_server = _neighbour("s3_server")


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> object:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "for-tests")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-test-1")
    return s3_server.Bucket()


@pytest.fixture
def url(bucket: object) -> Iterator[str]:
    with s3_server.serving(bucket) as address:
        yield address


def store_at(url: str) -> S3Store:
    return S3Store("bucket", "control/", url)


async def test_a_row_is_written_once_for_each_version(url: str, bucket: object) -> None:
    store = store_at(url)
    assert await store.read("a") is None
    first = await store.write("a", b"one", None)
    assert await store.read("a") == Row(b"one", first)
    with pytest.raises(Raced):
        await store.write("a", b"two", None)
    second = await store.write("a", b"two", first)
    with pytest.raises(Raced):
        await store.write("a", b"three", first)
    assert await store.read("a") == Row(b"two", second)
    with pytest.raises(Raced):
        await store.write("b", b"x", first)
    assert list(bucket.objects) == ["/bucket/control/a"]  # type: ignore[attr-defined]
    await store.close()


async def test_of_many_writers_one_wins(url: str) -> None:
    stores = [store_at(url) for _ in range(4)]
    results = await asyncio.gather(
        *(store.write("a", bytes([n]), None) for n, store in enumerate(stores)),
        return_exceptions=True,
    )
    assert sorted(type(result).__name__ for result in results) == ["Raced"] * 3 + ["str"]


async def test_a_successor_fences_an_older_control(url: str) -> None:
    def next_of(body: bytes | None) -> tuple[int, bytes]:
        epoch = int(body or b"0") + 1
        return epoch, str(epoch).encode()

    old, new = Journal(store_at(url)), Journal(store_at(url))
    await old.take("state", next_of)
    await old.write("table", b"old")
    await new.take("state", next_of)
    assert await new.claim("table") == b"old"
    with pytest.raises(Fenced):
        await old.write("table", b"late")
    assert new.epoch == 2


async def test_a_write_whose_answer_never_came_is_recognised(url: str, bucket: object) -> None:
    journal = Journal(store_at(url))
    await journal.write("table", b"a")
    hang = bucket.hang = threading.Event()  # type: ignore[attr-defined]
    journal._wait_s = 0.2
    with pytest.raises(StoreFailed, match="took over"):
        await journal.write("table", b"b")
    bucket.hang, journal._wait_s = None, 20.0  # type: ignore[attr-defined]
    hang.set()
    await journal.write("table", b"c")
    assert bucket.objects["/bucket/control/table"].endswith(b"\nc")  # type: ignore[attr-defined]


@pytest.mark.parametrize("status", [403, 500, 503])
async def test_a_bucket_that_refuses_is_an_error_of_ours(
    url: str, bucket: object, status: int
) -> None:
    bucket.status = status  # type: ignore[attr-defined]
    store = store_at(url)
    with pytest.raises(StoreFailed, match="s3://bucket"):
        await store.read("a")
    with pytest.raises(StoreFailed):
        await store.write("a", b"", None)


async def test_nobody_at_the_address_is_an_error_of_ours(bucket: object) -> None:
    with pytest.raises(StoreFailed):
        await store_at("http://127.0.0.1:9").read("a")
