"""Asks a named version over HTTP, patiently: a replay is nobody's hurry."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

import httpx

from modelyard.contract.errors import ConfigError, ModelyardError

ATTEMPTS: Final = 5
TIMEOUT_S: Final = 300.0
MOST_WAIT_S: Final = 30.0
_MAX_TEXT: Final = 200
_BUSY: Final = (429, 503)


class NoAnswer(ModelyardError):
    """The platform gave none; the text says what it said instead."""


class AskVersion:
    """POST with a key that has the role evaluate. May be used from several threads."""

    def __init__(
        self,
        url: str,
        api_key: str,
        sleep: Callable[[float], None],
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._sleep = sleep
        self._http = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {api_key}"},
            timeout=TIMEOUT_S,
            transport=transport,
        )

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """The JSON of a 200. Waits and asks again when told to.

        Raises NoAnswer, and ConfigError for a key that may not: no other item would fare better.
        """
        for _ in range(ATTEMPTS - 1):
            answer = self._once(path, body)
            if answer.status_code not in _BUSY:
                break
            self._sleep(_retry_after_s(answer))
        else:
            answer = self._once(path, body)
        if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            raise ConfigError(
                "a replay names versions, which this key may not: give --api-key a tenant's key "
                f"with the roles invoke and evaluate ({answer.text[:_MAX_TEXT]})"
            )
        if answer.status_code != httpx.codes.OK:
            raise NoAnswer(f"{answer.status_code}: {answer.text[:_MAX_TEXT]}")
        try:
            return answer.json()
        except ValueError as error:
            raise NoAnswer(f"no JSON: {answer.text[:_MAX_TEXT]}") from error

    def _once(self, path: str, body: dict[str, Any]) -> httpx.Response:
        try:
            return self._http.post(path, json=body)
        except httpx.HTTPError as error:
            raise NoAnswer(f"{type(error).__name__}: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.close()


def _retry_after_s(answer: httpx.Response) -> float:
    try:
        wait_s = float(answer.headers.get("retry-after", "1"))
    except ValueError:
        return 1.0
    return min(max(wait_s, 0.0), MOST_WAIT_S) if math.isfinite(wait_s) else MOST_WAIT_S
