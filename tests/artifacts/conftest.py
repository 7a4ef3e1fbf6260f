"""A real S3 server (moto's, over HTTP), a proxy before it that breaks things, and a bucket."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from modelyard.artifacts.backoff import Patience
from modelyard.artifacts.manifest import Identity, Manifest
from modelyard.artifacts.package import write_manifest
from modelyard.artifacts.verify import files_under
from modelyard.config.settings import Settings
from modelyard.testing.tiny_model import write_tiny_model
from tests.artifacts.fault_proxy import FaultProxy, proxy_to

_numbers = itertools.count()


@dataclass
class S3World:
    """A bucket of its own behind a proxy, and a node whose cache is empty."""

    proxy: FaultProxy
    bucket: str
    client: Any
    settings: Settings
    folder: Path
    patience: Patience

    @property
    def uri(self) -> str:
        return f"s3://{self.bucket}/models"

    def pushed(self, extra_bytes: int = 0, **tiny: Any) -> Manifest:
        """A tiny model in the store; with `extra_bytes`, beside it a file of that size."""
        folder = self.folder / f"made-{next(_numbers)}"
        manifest = write_tiny_model(folder, **tiny)
        if extra_bytes:
            manifest = add_file(folder, manifest, extra_bytes)
        # Straight to the server: pushes have tests of their own.
        for path in files_under(folder):
            body = (folder / path).read_bytes()
            self.client.put_object(Bucket=self.bucket, Key=self.key(manifest, path), Body=body)
        return manifest

    def key(self, manifest: Manifest, path: str) -> str:
        return f"models/{manifest.name}/{manifest.version}/{path}"

    def address(self, manifest: Manifest) -> str:
        return f"{self.uri}/{manifest.name}/{manifest.version}"


def add_file(folder: Path, manifest: Manifest, size_bytes: int) -> Manifest:
    """A file of random bytes in a packaged folder, packaged again."""
    (folder / "extra.dat").write_bytes(os.urandom(size_bytes))
    of_author = {name: getattr(manifest, name) for name in Identity.model_fields}
    return write_manifest(folder, Identity.model_construct(**of_author))


@pytest.fixture(scope="session")
def s3_server() -> Iterator[tuple[str, int]]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    yield server.get_host_and_port()
    server.stop()


@pytest.fixture(scope="session")
def s3_client(s3_server: tuple[str, int]) -> Iterator[Any]:
    """Past the proxy."""
    host, port = s3_server
    keys = {"aws_access_key_id": "for-tests", "aws_secret_access_key": "for-tests"}
    session = boto3.session.Session(region_name="us-east-1", **keys)
    client = session.client("s3", endpoint_url=f"http://{host}:{port}")
    yield client
    client.close()


@pytest.fixture
def s3(
    s3_server: tuple[str, int], s3_client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[S3World]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "for-tests")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-aws-config"))
    bucket = f"bucket-{next(_numbers)}"
    s3_client.create_bucket(Bucket=bucket)
    with proxy_to(s3_server) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        yield S3World(
            proxy=proxy,
            bucket=bucket,
            client=s3_client,
            settings=Settings(tmp_path / "home", tmp_path / "home" / "secret"),
            folder=tmp_path,
            patience=Patience(connect_s=5, read_s=5, attempts=4, base_s=0.01, cap_s=0.02),
        )
