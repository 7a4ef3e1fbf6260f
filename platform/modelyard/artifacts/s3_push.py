"""Upload one version to a bucket, so that nobody ever finds half of it or a mix of two."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

from modelyard.artifacts.backoff import Patience
from modelyard.artifacts.hashing_reader import HashingReader
from modelyard.artifacts.json_file import require_bounded
from modelyard.artifacts.manifest import (
    MANIFEST_BYTES,
    MANIFEST_NAME,
    File,
    Manifest,
    parse_manifest,
)
from modelyard.artifacts.s3_errors import MISSING, RACED, code_of, in_our_words
from modelyard.artifacts.s3_files import S3Files
from modelyard.artifacts.source import Interrupted
from modelyard.artifacts.stores import Pushed, expect_same
from modelyard.artifacts.transfer import Progress, counting
from modelyard.contract.errors import ArtifactError

# Holds the digest of the version being pushed. No file of a version can have an `@` in its name.
CLAIM_NAME: Final = "@pushing"
# Parts are kept in memory until they are sent: at most four, of 8 MiB up to 72 GB and then as
# large as S3's 10,000 parts ask for.
_PART_BYTES: Final = 8 << 20
_PARTS: Final = 9_000
_PARTS_IN_MEMORY: Final = 4
_CLAIM_ATTEMPTS: Final = 5
_CLAIM_PAUSE_S: Final = 1.0


class S3Push:
    """The claim is written first, if there is none: of two pushes of other bytes one is refused
    before it overwrites a file of the other's. manifest.json is written last, if there is none.

    A push that was broken off is gone on by the next of the same digest.
    """

    def __init__(
        self,
        client: Any,
        bucket: str,
        prefix: str,
        folder: Path,
        manifest: Manifest,
        progress: Progress,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._sleep = sleep
        self._bucket = bucket
        self._prefix = prefix
        self._folder = folder
        self._manifest = manifest
        self._sent = counting(manifest, progress)
        self._uri = f"s3://{bucket}/{prefix}"
        self._files = S3Files(client, bucket, prefix)

    def run(self, repair: Patience | None = None) -> Pushed:
        """repair: read every stored byte of a version that is there, with that patience."""
        digest = self._manifest.digest()
        if (found := self._found()) is not None:
            return self._mend(found, repair)
        self._claim(digest)
        # Looked at again: whoever had the claim before us may have ended in between.
        found = self._found()
        if found is None:
            for file in self._manifest.files:
                self._upload(file)
            data = (self._folder / MANIFEST_NAME).read_bytes()
            if not self._put_new(MANIFEST_NAME, data):
                found = self._found()
                if found is None:
                    raise Interrupted(f"{self._uri}: another push writes its {MANIFEST_NAME} now")
        with in_our_words(self._uri):
            self._client.delete_object(Bucket=self._bucket, Key=self._key(CLAIM_NAME))
        if found is not None:
            return self._mend(found, repair)
        return Pushed(self._uri, self._manifest, made=True)

    def _mend(self, found: Manifest, repair: Patience | None) -> Pushed:
        """Send again what of the same version is not as its manifest says. Without a claim: who
        else does it at once sends the same bytes."""
        expect_same(self._uri, found, self._manifest)
        damaged = [
            file
            for file in self._manifest.files
            if not self._files.is_whole(file, repair, self._sent)
        ]
        for file in damaged:
            self._send(file)
        return Pushed(self._uri, found, False, tuple(file.path for file in damaged))

    def _found(self) -> Manifest | None:
        data = self._get(MANIFEST_NAME)
        return None if data is None else parse_manifest(data, f"{self._uri}/{MANIFEST_NAME}")

    def _claim(self, digest: str) -> None:
        for _ in range(_CLAIM_ATTEMPTS):
            if self._put_new(CLAIM_NAME, digest.encode()):
                return
            claim = self._get(CLAIM_NAME)
            if claim is not None:
                self._expect_ours(claim.decode(errors="replace"), digest)
                return
            # Another's was being written, or has gone since. Without one, two pushes could mix.
            self._sleep(_CLAIM_PAUSE_S)
        raise Interrupted(f"{self._uri}: {CLAIM_NAME} could not be written in the way of others")

    def _expect_ours(self, claim: str, digest: str) -> None:
        if claim != digest:
            raise ArtifactError(
                f"{self._uri}: a push of the manifest digest {claim} is under way or was broken "
                f"off, the folder's is {digest}: let it end, or delete {self._uri}/{CLAIM_NAME}"
            )

    def _upload(self, file: File) -> None:
        if self._files.holds(file):
            self._sent(file.size_bytes)
        else:
            self._send(file)

    def _send(self, file: File) -> None:
        config = TransferConfig(
            multipart_threshold=_PART_BYTES,
            multipart_chunksize=max(_PART_BYTES, math.ceil(file.size_bytes / _PARTS)),
            max_concurrency=_PARTS_IN_MEMORY,
        )
        config.max_in_memory_upload_chunks = _PARTS_IN_MEMORY
        with (
            in_our_words(f"{self._uri}/{file.path}"),
            HashingReader(self._folder, file) as reader,
        ):
            self._client.upload_fileobj(
                reader,
                self._bucket,
                self._key(file.path),
                ExtraArgs={"Metadata": {"sha256": file.sha256}},
                Config=config,
                Callback=self._sent,
            )

    def _get(self, name: str) -> bytes | None:
        with in_our_words(f"{self._uri}/{name}"):
            try:
                answer = self._client.get_object(Bucket=self._bucket, Key=self._key(name))
                where = f"{self._uri}/{name}"
                require_bounded(answer["ContentLength"], MANIFEST_BYTES, where)
                return bytes(answer["Body"].read())
            except ClientError as error:
                if code_of(error) in MISSING:
                    return None
                raise

    def _put_new(self, name: str, data: bytes) -> bool:
        """False when there is one already, or another process writes one now."""
        with in_our_words(f"{self._uri}/{name}"):
            try:
                self._client.put_object(
                    Bucket=self._bucket, Key=self._key(name), Body=data, IfNoneMatch="*"
                )
            except ClientError as error:
                if code_of(error) in RACED:
                    return False
                raise
        return True

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}"
