"""A store in a bucket of S3, or of anything that speaks it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from random import random
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from modelyard.artifacts.backoff import Patience
from modelyard.artifacts.manifest import MANIFEST_BYTES, MANIFEST_NAME, parse_manifest
from modelyard.artifacts.s3_client import s3_client
from modelyard.artifacts.s3_errors import MISSING, code_of, in_our_words
from modelyard.artifacts.s3_push import S3Push
from modelyard.artifacts.s3_source import S3Source
from modelyard.artifacts.source import Interrupted, Stored
from modelyard.artifacts.stores import Pushed, check_identity, packaged
from modelyard.artifacts.transfer import Progress
from modelyard.contract.errors import ArtifactError, ConfigError

T = TypeVar("T")

_FORM: Final = "write s3://bucket/prefix, without ? and #"
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


def split_bucket(uri: str) -> tuple[str, str]:
    """Bucket and prefix, which has no slash at its ends. Raises ConfigError."""
    try:
        parts = urlsplit(uri)
    except ValueError as error:
        raise ConfigError(f"store {uri!r}: not an address: {_FORM}") from error
    prefix = parts.path.strip("/")
    if not _BUCKET.fullmatch(parts.netloc) or parts.query or parts.fragment or "//" in prefix:
        raise ConfigError(f"store {uri!r}: {_FORM}")
    return parts.netloc, prefix


class S3Store:
    """Versions as objects below `bucket`/`prefix`. No object is read before its time."""

    def __init__(self, bucket: str, prefix: str, patience: Patience) -> None:
        self._bucket = bucket
        self._prefix = prefix
        self._patience = patience

    @property
    def uri(self) -> str:
        return f"s3://{self._bucket}/{self._prefix}".rstrip("/")

    def names(self) -> list[str]:
        return [name for name in self._below("") if self.versions(name)]

    def versions(self, name: str) -> list[str]:
        return [
            version for version in self._below(name) if self._exists(name, version, MANIFEST_NAME)
        ]

    def find(self, name: str, version: str) -> Stored:
        source = S3Source(self._client, self._bucket, self._key(name, version))
        data = self._patiently(lambda: source.read(MANIFEST_NAME, MANIFEST_BYTES))
        manifest = parse_manifest(data, f"{source.uri}/{MANIFEST_NAME}")
        check_identity(source.uri, manifest, name, version)
        return Stored(source, manifest, data)

    def push(self, folder: Path, progress: Progress, *, repair: bool = False) -> Pushed:
        manifest = packaged(folder)
        prefix = self._key(manifest.name, manifest.version)
        client = self._new_client(self._patience.write_s, self._patience.attempts)
        try:
            push = S3Push(client, self._bucket, prefix, folder, manifest, progress)
            return push.run(self._patience if repair else None)
        except Interrupted as error:
            raise Interrupted(
                f"{error}: check the store, the network and AWS_ENDPOINT_URL, then push again: "
                "files that were sent whole are not sent again"
            ) from error

    @cached_property
    def _client(self) -> Any:
        # One attempt a call: downloads, and _patiently, count their own.
        return self._new_client(self._patience.read_s, 1)

    def _new_client(self, read_s: float, attempts: int) -> Any:
        with in_our_words(self.uri):
            return s3_client(self._patience.connect_s, read_s, attempts)

    def _key(self, *parts: str) -> str:
        return "/".join(part for part in (self._prefix, *parts) if part)

    def _below(self, name: str) -> list[str]:
        prefix = self._key(name)
        asked = {"Bucket": self._bucket, "Delimiter": "/", "Prefix": f"{prefix}/" if prefix else ""}

        def ask() -> list[str]:
            with in_our_words(f"s3://{self._bucket}/{prefix}"):
                pages = self._client.get_paginator("list_objects_v2").paginate(**asked)
                return [each["Prefix"] for page in pages for each in page.get("CommonPrefixes", ())]

        return [found.rstrip("/").rpartition("/")[2] for found in self._patiently(ask)]

    def _exists(self, *parts: str) -> bool:
        key = self._key(*parts)

        def ask() -> bool:
            with in_our_words(f"s3://{self._bucket}/{key}"):
                try:
                    self._client.head_object(Bucket=self._bucket, Key=key)
                except ClientError as error:
                    if code_of(error) in MISSING:
                        return False
                    raise
            return True

        return self._patiently(ask)

    def _patiently(self, ask: Callable[[], T]) -> T:
        """A small question, asked again as a download would be."""
        for failures in range(1, self._patience.attempts):
            try:
                return ask()
            except Interrupted:
                time.sleep(self._patience.backoff_s(failures, random()))
        try:
            return ask()
        except Interrupted as error:
            raise ArtifactError(
                f"{error}; asked {self._patience.attempts} times: check the store, the network "
                "and AWS_ENDPOINT_URL"
            ) from error
