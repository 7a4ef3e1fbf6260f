"""The store in a bucket: one object a key, written with S3's conditional writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from modelyard.control.store import Raced, Row, StoreFailed

T = TypeVar("T")

_CONNECT_S: Final = 2
_READ_S: Final = 3
_MISSING: Final = frozenset(("NoSuchKey", "404"))
# 409: another conditional write was under way; whether it won is read back.
_RACED: Final = frozenset(("PreconditionFailed", "ConditionalRequestConflict", "412", "409"))


class S3Store:
    """A row's version is its object's ETag. Credentials and region come from boto3's own chain.

    No retries by the client: a conditional write that is sent twice would refuse itself, and the
    journal knows how to look.
    """

    def __init__(self, bucket: str, prefix: str, endpoint_url: str | None = None) -> None:
        self._bucket = bucket
        self._prefix = prefix.strip("/")
        self._thread = ThreadPoolExecutor(1, "control-store")
        self._endpoint_url = endpoint_url
        self._client: Any = None

    async def read(self, key: str) -> Row | None:
        def read(client: Any) -> Row | None:
            try:
                answer = client.get_object(Bucket=self._bucket, Key=self._name(key))
            except ClientError as error:
                if _code(error) in _MISSING:
                    return None
                raise
            return Row(answer["Body"].read(), answer["ETag"])

        return await self._on_thread(read)

    async def write(self, key: str, data: bytes, version: str | None) -> str:
        condition = {"IfNoneMatch": "*"} if version is None else {"IfMatch": version}

        def write(client: Any) -> str:
            try:
                answer = client.put_object(
                    Bucket=self._bucket, Key=self._name(key), Body=data, **condition
                )
            except ClientError as error:
                # If-Match on an object that is gone is a 404.
                if _code(error) in _RACED | _MISSING:
                    raise Raced(f"another process has written {key}") from error
                raise
            return str(answer["ETag"])

        return await self._on_thread(write)

    async def close(self) -> None:
        self._thread.shutdown(wait=False)

    def _name(self, key: str) -> str:
        return f"{self._prefix}/{key}" if self._prefix else key

    async def _on_thread(self, do: Callable[[Any], T]) -> T:
        def run() -> T:
            try:
                return do(self._connected())
            except (ClientError, BotoCoreError, OSError) as error:
                raise StoreFailed(f"control's store s3://{self._bucket} failed: {error}") from error

        return await asyncio.get_running_loop().run_in_executor(self._thread, run)

    def _connected(self) -> Any:
        if self._client is None:
            self._client = boto3.client(
                "s3",
                endpoint_url=self._endpoint_url,
                config=Config(
                    connect_timeout=_CONNECT_S,
                    read_timeout=_READ_S,
                    retries={"total_max_attempts": 1},
                ),
            )
        return self._client


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
