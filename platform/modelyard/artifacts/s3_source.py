"""The files of one version in a bucket, read in ranges."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from modelyard.artifacts.s3_errors import in_our_words
from modelyard.artifacts.source import CHUNK_BYTES, Body, Changed
from modelyard.contract.errors import ArtifactError


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

    def read(self, path: str) -> bytes:
        """A small file, whole."""
        with self.open(path, 0, None) as body:
            if body.size_bytes > CHUNK_BYTES * 16:
                raise ArtifactError(f"{self.uri}/{path}: is {body.size_bytes} bytes, so not that")
            return b"".join(body.chunks)


def _chunks(stream: Any, where: str) -> Iterator[bytes]:
    with in_our_words(where):
        while chunk := stream.read(CHUNK_BYTES):
            yield chunk
