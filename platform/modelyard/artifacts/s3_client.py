"""The client of a bucket. Credentials, endpoint and region are boto3's own business."""

from __future__ import annotations

from typing import Any, Final

import boto3
from botocore.config import Config

_CONNECTIONS: Final = 16


def s3_client(connect_s: float, read_s: float, attempts: int) -> Any:
    """attempts: of each call, by boto3's own retries; 1 for callers that count their own.

    Nothing is shared with control's store: that one must fail in seconds and never retry.
    """
    # A session of its own: the default one is not safe to make clients from on several threads.
    return boto3.session.Session().client(
        "s3",
        config=Config(
            connect_timeout=connect_s,
            read_timeout=read_s,
            max_pool_connections=_CONNECTIONS,
            # What arrives is held against the manifest's sha256 anyway, and boto3's own error on a
            # wrong CRC names neither of the two.
            response_checksum_validation="when_required",
            retries={"mode": "standard", "total_max_attempts": attempts},
        ),
    )
