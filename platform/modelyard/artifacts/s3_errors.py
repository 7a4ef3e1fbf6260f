"""What boto3 raises, sorted by whether trying again may help, in our words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    IncompleteReadError,
    ResponseStreamingError,
)
from botocore.exceptions import ConnectionError as NoConnectionError

from modelyard.artifacts.source import Changed, Interrupted
from modelyard.contract.errors import ArtifactError

_NO_BUCKET: Final = "NoSuchBucket"
MISSING: Final = frozenset({"NoSuchKey", _NO_BUCKET, "404"})
# 412, and 409 while another conditional write to the same key is under way.
RACED: Final = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "412", "409"})
_CHANGED: Final = frozenset({"PreconditionFailed", "412", "InvalidRange", "416"})
# S3 answers some of these with 400, so they are told by name before the status is looked at.
_CREDENTIALS: Final = frozenset(
    {"ExpiredToken", "TokenRefreshRequired", "InvalidToken", "InvalidAccessKeyId"}
)
_RENEW: Final = (
    "boto3 takes them from AWS_* variables, ~/.aws or the machine's role; a platform that runs has "
    "the variables that it was started with: start it again with `make down` and `make up`"
)
_BROKEN: Final = (
    NoConnectionError,
    HTTPClientError,
    ResponseStreamingError,
    IncompleteReadError,
)
_LATER: Final = frozenset({"SlowDown", "RequestTimeout", "Throttling", "RequestLimitExceeded"})


@contextmanager
def in_our_words(where: str) -> Iterator[None]:
    """Raises Interrupted, Changed or ArtifactError, naming `where`, for an error of boto3."""
    try:
        yield
    except ClientError as error:
        raise _of_answer(error, where) from error
    except _BROKEN as error:
        raise Interrupted(f"{where}: {error}") from error
    except BotoCoreError as error:
        # No credentials, a token that cannot be renewed, a profile that is not there.
        raise ArtifactError(
            f"{where}: {error}: correct the credentials or the endpoint ({_RENEW})"
        ) from error


def code_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _of_answer(error: ClientError, where: str) -> ArtifactError:
    code = code_of(error)
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    said = f"{where}: the store answered {status} {code}"
    if code in _CHANGED:
        return Changed(f"{said}: the stored file was replaced meanwhile")
    if code in _LATER or status == 429 or status >= 500:
        return Interrupted(said)
    if code == _NO_BUCKET:
        # Not `where`: the file that was asked for first says nothing about it.
        bucket = where.removeprefix("s3://").partition("/")[0]
        return ArtifactError(
            f"s3://{bucket}: the store answered {status} {code}: the bucket must exist: make it, "
            "or correct its name"
        )
    if code in MISSING:
        return ArtifactError(f"{said}: it is not there: check the address, or push it again")
    if code in _CREDENTIALS or status in (401, 403):
        return ArtifactError(
            f"{said}: the credentials are missing, expired or may not do this: renew them "
            f"({_RENEW})"
        )
    return ArtifactError(f"{said}: {error}: check the address and the endpoint")
