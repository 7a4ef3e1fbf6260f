import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from modelyard.contract.errors import (
    BodyTooLarge,
    DeadlineExceeded,
    InvalidRequest,
    RequestError,
    UnsupportedMedia,
)
from modelyard.ingress.body import READ_WITHIN_S, parse_object, read_body, refuse_encoded
from modelyard.testing.virtual_time import run_virtual

JSON = "application/json"


def refused(body: bytes) -> str:
    with pytest.raises(InvalidRequest) as caught:
        parse_object(body, JSON)
    assert caught.value.status == 400
    return caught.value.message


@pytest.mark.parametrize(
    "media",
    [JSON, "application/json; charset=utf-8", "Application/JSON", "application/vnd.api+json"],
)
def test_json_is_read_under_each_of_its_media_types(media: str) -> None:
    assert parse_object(b'{"a": [1, 2.5, null, true, "\xc3\xa9"]}', media) == {
        "a": [1, 2.5, None, True, "\u00e9"]
    }


@pytest.mark.parametrize(
    "media", [None, "", "text/plain", "multipart/form-data; boundary=x", "application/jsonl", ";"]
)
def test_any_other_media_type_is_415(media: str | None) -> None:
    with pytest.raises(UnsupportedMedia, match="Content-Type"):
        parse_object(b"{}", media)


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "br", "zstd", "identity, gzip", "x"])
def test_a_compressed_body_is_415(encoding: str) -> None:
    with pytest.raises(UnsupportedMedia, match="Content-Encoding"):
        refuse_encoded(encoding)


@pytest.mark.parametrize("encoding", [None, "", "identity", " Identity "])
def test_a_body_as_it_is_passes(encoding: str | None) -> None:
    refuse_encoded(encoding)


@pytest.mark.parametrize("body", [b"", b" ", b"{", b"[1", b"{} {}", b"{'a': 1}", b"nope", b"\x00"])
def test_what_is_not_json_is_400(body: bytes) -> None:
    assert "not valid JSON" in refused(body)


@pytest.mark.parametrize("body", [b"[]", b"null", b"1", b'"x"', b"true"])
def test_json_that_is_not_an_object_is_400(body: bytes) -> None:
    assert "must be a JSON object" in refused(body)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "9" * 5000])
def test_a_number_that_json_or_an_engine_cannot_hold_is_400(number: str) -> None:
    assert "not valid JSON" in refused(f'{{"a": {number}}}'.encode())


def test_a_huge_whole_number_is_kept_exactly() -> None:
    assert parse_object(b'{"a": 1' + b"0" * 400 + b"}", JSON) == {"a": 10**400}


@pytest.mark.parametrize(
    "body", [b'{"a": "\xff"}', b'{"a": "\xed\xa0\x80"}', b'{"a": "\\ud800"}', b'{"\\udfff": 1}']
)
def test_text_that_is_not_unicode_is_400(body: bytes) -> None:
    assert "not valid" in refused(body)


def test_a_surrogate_pair_and_a_byte_order_mark_are_fine() -> None:
    assert parse_object(b'{"a": "\\ud83d\\ude00"}', JSON) == {"a": "\U0001f600"}
    assert parse_object(b'\xef\xbb\xbf{"a": 1}', JSON) == {"a": 1}


@pytest.mark.parametrize("body", [b'{"a":' * 5000 + b"1" + b"}" * 5000, b'{"a":' + b"[" * 200_000])
def test_nesting_without_end_is_400(body: bytes) -> None:
    refused(body)


def test_whatever_depth_is_let_through_can_be_written_again_deep_in_the_stack() -> None:
    """The pipeline and the replica write the body from deeper frames than this one."""

    def deeper(frames: int, record: dict[str, Any]) -> str:
        return deeper(frames - 1, record) if frames else json.dumps(record)

    for depth in range(50, 1000, 50):
        body = b'{"a":' * depth + b"1" + b"}" * depth
        try:
            record = parse_object(body, JSON)
        except InvalidRequest:
            continue
        assert deeper(300, record)
    assert parse_object(b'{"a":' * 100 + b"1" + b"}" * 100, JSON)


def test_of_a_key_given_twice_the_last_one_counts() -> None:
    assert parse_object(b'{"a": 1, "a": 2}', JSON) == {"a": 2}


def test_the_text_of_a_body_is_never_echoed() -> None:
    assert "secret" not in refused(b'{"messages": "secret prompt')
    assert "secret" not in refused(b'{"a": secret}')


@given(body=st.binary() | st.text().map(str.encode), media=st.none() | st.just(JSON) | st.text())
@example(body=b"\xff\xfe{\x00}\x00", media=JSON)
def test_any_bytes_are_an_object_or_a_request_error(body: bytes, media: str | None) -> None:
    try:
        record = parse_object(body, media)
    except RequestError:
        return
    json.dumps(record, ensure_ascii=False).encode()


async def chunked(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def test_a_body_is_its_chunks_in_order() -> None:
    assert await read_body(chunked(b"a", b"", b"bc"), None, 3) == b"abc"
    assert await read_body(chunked(), "0", 3) == b""


async def test_a_body_is_refused_by_its_announced_length_before_it_is_read() -> None:
    chunks = chunked(b"abcd")
    with pytest.raises(BodyTooLarge, match="larger than 3 bytes"):
        await read_body(chunks, "4", 3)
    assert await anext(chunks) == b"abcd"


async def test_a_body_is_refused_at_the_chunk_that_is_too_much() -> None:
    chunks = chunked(b"ab", b"cd", b"never read")
    with pytest.raises(BodyTooLarge):
        await read_body(chunks, None, 3)
    assert await anext(chunks) == b"never read"


@pytest.mark.parametrize("length", ["", "x", "-4", "\u00b2", "\u0664", " 2"])
async def test_an_odd_announcement_is_not_trusted(length: str) -> None:
    assert await read_body(chunked(b"ab"), length, 3) == b"ab"
    with pytest.raises(BodyTooLarge):
        await read_body(chunked(b"abcd"), length, 3)


async def test_an_endless_announcement_is_too_large() -> None:
    with pytest.raises(BodyTooLarge):
        await read_body(chunked(b"ab"), "9" * 5000, 3)


def test_a_body_that_trickles_is_given_up() -> None:
    async def trickle() -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(1)
            yield b"x"

    async def main() -> float:
        with pytest.raises(DeadlineExceeded) as caught:
            await read_body(trickle(), None, 10**6)
        assert caught.value.reason == "slow_body"
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) == READ_WITHIN_S
