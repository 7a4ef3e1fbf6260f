"""Is a file of a version in its bucket, and whole?"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from modelyard.artifacts.backoff import Patience
from modelyard.artifacts.download import Conduct, StoredDamaged, receive
from modelyard.artifacts.manifest import File
from modelyard.artifacts.part import Received
from modelyard.artifacts.s3_errors import MISSING, code_of, in_our_words
from modelyard.artifacts.s3_source import S3Source


class S3Files:
    """Objects below `bucket`/`prefix`."""

    def __init__(self, client: Any, bucket: str, prefix: str) -> None:
        self._client = client
        self._bucket = bucket
        self._source = S3Source(client, bucket, prefix)
        self._prefix = prefix

    def holds(self, file: File) -> bool:
        """An object has that metadata only once it was read whole and its sha256 was right."""
        head = self._head(file)
        return head is not None and (
            (head["ContentLength"], head["Metadata"].get("sha256"))
            == (file.size_bytes, file.sha256)
        )

    def is_whole(self, file: File, repair: Patience | None, read: Callable[[int], None]) -> bool:
        """Has it its size, and with `repair` its sha256? Its bytes are then read, with that
        patience. read: told of bytes that need not be sent. Raises as `download`."""
        head = self._head(file)
        if head is None or head["ContentLength"] != file.size_bytes:
            return False
        if repair is None:
            read(file.size_bytes)
            return True
        conduct = Conduct(repair, threading.Event().wait, random.random, read)
        try:
            receive(self._source, file, Received(), conduct)
        except StoredDamaged:
            return False
        return True

    def _head(self, file: File) -> Any:
        """None where there is no such object."""
        with in_our_words(f"{self._source.uri}/{file.path}"):
            try:
                key = f"{self._prefix}/{file.path}"
                return self._client.head_object(Bucket=self._bucket, Key=key)
            except ClientError as error:
                if code_of(error) in MISSING:
                    return None
                raise
