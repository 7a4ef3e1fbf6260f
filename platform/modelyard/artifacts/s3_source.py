"""The files of one version in a bucket, read in ranges."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from modelyard.artifacts.json_file import require_bounded
from modelyard.artifacts.s3_errors import in_our_words
from modelyard.artifacts.source import CHUNK_BYTES, Body, Changed


class S3Source:
    """Objects below `bucket`/`prefix`. The client must not retry: a download counts its own."""

    def __init__(self, client: Any, bucket: str, prefix: str) -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = prefix

    @property
    def uri(self) -> str:
        return f"s3://{self._bucket}/{self._prefix}"

    @contextmanager
    def open(self, path: str, start: int, tag: str | None) -> Iterator[Body]:
        where = f"{self.uri}/{path}"
        asked = {"Bucket": self._bucket, "Key": f"{self._prefix}/{path}"}
        if start:
            asked["Range"] = f"bytes={start}-"
        if tag:
            asked["IfMatch"] = tag
        with in_our_words(where):
            answer = self._client.get_object(**asked)
        if start and not answer.get("ContentRange", "").startswith(f"bytes {start}-"):
            raise Changed(f"{where}: asked for the bytes from {start} on, got others")
        try:
            yield Body(
                answer["ETag"],
                start + int(answer["ContentLength"]),
                _chunks(answer["Body"], where),
            )
        finally:
            # Not read to its end, the connection is dropped, not drained.
            answer["Body"].close()

    def read(self, path: str, limit_bytes: int) -> bytes:
        """A small file, whole. Raises ArtifactError for one above the limit, before reading it."""
        with self.open(path, 0, None) as body:
            require_bounded(body.size_bytes, limit_bytes, f"{self.uri}/{path}")
            return b"".join(body.chunks)


def _chunks(stream: Any, where: str) -> Iterator[bytes]:
    with in_our_words(where):
        while chunk := stream.read(CHUNK_BYTES):
            yield chunk
