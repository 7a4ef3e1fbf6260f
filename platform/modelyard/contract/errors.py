"""The error tree. The class is the contract's code; an instance carries what its receiver needs.

    ModelyardError
      InvalidRequest        400  invalid_request       schema, context limit, wrong kind of model
        MethodNotAllowed    405
        BodyTooLarge        413
        UnsupportedMedia    415
      Unauthenticated       401  unauthenticated       no key, unknown key
      Forbidden             403  forbidden             not entitled
      NotFound              404  not_found             alias or route
      RateLimited           429  rate_limited          quota; retryable
      Overloaded            503  overloaded            full, shed, not loaded; retryable
      DeadlineExceeded      504  deadline_exceeded     retryable only if no engine work was done
      ReplicaFailed         502  replica_failed        the replica died; retryable
        ReplicaDied
      Internal              500  internal              a bug; nothing leaks
      ConfigError            -   a wrong file          for the command line: never sent to a caller
      ArtifactError          -   a wrong artifact      stops a replica before it is ready
      StartError             -   a replica that cannot start, whatever the cause

Errors do not cross process boundaries as exceptions (pickling a subclass with keyword arguments is
fragile, and Serve would count a caller's typing error as ours): a shell answers a `Failure` record,
which the ingress turns back into one of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


class ModelyardError(Exception):
    """Root of every error this project raises on purpose."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as data: what a shell sends in place of an Item. Plain types only."""

    code: str
    message: str
    param: str | None = None
    reason: str | None = None
    wire_code: str | None = None  # OpenAI's `code` word when it is more precise than ours
    retryable: bool | None = None  # None: the code's default
    retry_after_s: float | None = None


class RequestError(ModelyardError):
    """An error with an HTTP status, sent to the caller."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    retryable_by_default: ClassVar[bool] = False
    openai_type: ClassVar[str] = "server_error"
    openai_code: ClassVar[str | None] = None

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        reason: str | None = None,
        wire_code: str | None = None,
        retryable: bool | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.reason = reason or self.code
        self.wire_code = wire_code or self.openai_code
        self.retryable = self.retryable_by_default if retryable is None else retryable
        self.retry_after_s = retry_after_s
        self.headers: dict[str, str] = {}  # sent with the error: what is left of a quota
        self.partial = ""  # for the client of a stream: the text that arrived before it failed

    def failure(self) -> Failure:
        return Failure(
            code=self.code,
            message=self.message,
            param=self.param,
            reason=self.reason,
            wire_code=self.wire_code,
            retryable=self.retryable,
            retry_after_s=self.retry_after_s,
        )


class InvalidRequest(RequestError):
    code = "invalid_request"
    status = 400
    openai_type = "invalid_request_error"


class MethodNotAllowed(InvalidRequest):
    status = 405


class BodyTooLarge(InvalidRequest):
    status = 413


class UnsupportedMedia(InvalidRequest):
    status = 415


class Unauthenticated(RequestError):
    code = "unauthenticated"
    status = 401
    openai_type = "authentication_error"
    openai_code = "invalid_api_key"


class Forbidden(RequestError):
    code = "forbidden"
    status = 403
    openai_type = "permission_error"
    openai_code = "permission_denied"


class NotFound(RequestError):
    code = "not_found"
    status = 404
    openai_type = "invalid_request_error"
    openai_code = "not_found"


class RateLimited(RequestError):
    code = "rate_limited"
    status = 429
    retryable_by_default = True
    openai_type = "rate_limit_error"
    openai_code = "rate_limit_exceeded"


class Overloaded(RequestError):
    code = "overloaded"
    status = 503
    retryable_by_default = True
    openai_code = "overloaded"


class DeadlineExceeded(RequestError):
    code = "deadline_exceeded"
    status = 504
    openai_code = "deadline_exceeded"


class ReplicaFailed(RequestError):
    code = "replica_failed"
    status = 502
    retryable_by_default = True
    openai_code = "replica_failed"


class ReplicaDied(ReplicaFailed):
    """The process is gone, `replica` by Ray's id of it. Where the request may be sent once more."""

    def __init__(self, message: str, *, replica: str) -> None:
        super().__init__(message, reason="replica_died")
        self.replica = replica


class Internal(RequestError):
    openai_code = "internal"


class ConfigError(ModelyardError):
    """A wrong file or setting, found before anything is deployed. The text says what to do."""


class ArtifactError(ModelyardError):
    """An artifact that must not be served: missing, altered, or of the wrong kind."""


class StartError(ModelyardError):
    """A replica that cannot start. The text names the phase and the root cause."""


_BY_CODE: dict[str, type[RequestError]] = {
    cls.code: cls
    for cls in (
        InvalidRequest,
        Unauthenticated,
        Forbidden,
        NotFound,
        RateLimited,
        Overloaded,
        DeadlineExceeded,
        ReplicaFailed,
        Internal,
    )
}


def from_failure(failure: Failure) -> RequestError:
    """The exception for a shell's Failure. An unknown code becomes Internal, never a KeyError."""
    fields: dict[str, Any] = {
        "param": failure.param,
        "reason": failure.reason,
        "wire_code": failure.wire_code,
        "retryable": failure.retryable,
        "retry_after_s": failure.retry_after_s,
    }
    return _BY_CODE.get(failure.code, Internal)(failure.message, **fields)
