"""The ingress for data jobs: the same pipeline as over HTTP, reached by a Ray handle."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Final

from modelyard.contract.envelope import Failure, Item
from modelyard.contract.errors import InvalidRequest, NotFound, RequestError
from modelyard.contract.headers import request_id_of
from modelyard.contract.operations import Operation
from modelyard.contract.reply import Reply
from modelyard.ingress.body import parse_object, read_body
from modelyard.ingress.opening import opened
from modelyard.ingress.pipeline import Pipeline
from modelyard.ingress.prepared import Ask, Prepared

JSON: Final = "application/json"


class ByHandle:
    """Requests in plain types, so that a job with an older modelyard is understood.

    `key` is an API key, `operation` one of Operation, `body` the JSON of the operation's HTTP
    route, `headers` those of HTTP (X-Deadline-Ms, X-Request-Id, traceparent) in this spelling.
    Errors are answered as a Failure, not raised: Serve would log and count a caller's mistake as
    ours.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def ask(
        self, key: str, operation: str, body: bytes, headers: Mapping[str, str]
    ) -> Reply | Failure:
        """One answer."""
        try:
            prepared = await self._prepared(key, operation, body, headers, stream=False)
            return _reply(await self._pipeline.call(prepared), prepared)
        except RequestError as error:
            return error.failure()

    async def ask_stream(
        self, key: str, operation: str, body: bytes, headers: Mapping[str, str]
    ) -> AsyncGenerator[bytes | Reply | Failure]:
        """The bytes of a stream as they come, and one Reply or Failure at its end."""
        try:
            prepared = await self._prepared(key, operation, body, headers, stream=True)
            async with aclosing(self._pipeline.stream(prepared)) as items:
                async for item in items:
                    if item.final is not None:
                        yield _reply(item, prepared)
                    elif item.data:
                        yield item.data
        except RequestError as error:
            yield error.failure()

    async def _prepared(
        self, key: str, operation: str, body: bytes, headers: Mapping[str, str], *, stream: bool
    ) -> Prepared:
        """What app.answer does for HTTP: key, body, everything that needs no replica."""
        pipeline = self._pipeline
        ask = Ask(
            operation=_operation(operation),
            route=f"handle/{operation}",
            authorization=f"Bearer {key}",
            headers=headers,
            request_id=request_id_of(headers),
            started=pipeline.now(),
        )
        with opened(pipeline, ask) as record:
            caller = await pipeline.authenticate(ask, record)
            raw = await read_body(_whole(body), None, pipeline.max_body_bytes)
            prepared = pipeline.prepare(ask, caller, parse_object(raw, JSON), record)
            if prepared.work.stream is not stream:
                raise InvalidRequest(
                    "ask answers a body without stream, ask_stream one with it", param="stream"
                )
            return prepared


def _operation(name: str) -> Operation:
    try:
        return Operation(name)
    except ValueError as error:
        known = ", ".join(Operation)
        raise NotFound(
            f"there is no such operation: use one of {known}", reason="no_route"
        ) from error


def _reply(item: Item, prepared: Prepared) -> Reply:
    """Of an item with `final`: the pipeline lets no other end an answer."""
    assert item.final is not None
    target = prepared.target
    return Reply(
        item.data,
        prepared.envelope.answer_id,
        target.version,
        target.arm,
        item.final,
        prepared.work.ignored,
        prepared.pin,
        target.pin_ignored,
    )


async def _whole(body: bytes) -> AsyncIterator[bytes]:
    yield body
