"""Asks a running platform, through its ingress, what only a key with the role admin may."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

import httpx

from cluster.local import LocalCluster
from modelyard.config.settings import Settings
from modelyard.contract.errors import ConfigError, ModelyardError

DEFAULT_URL: Final = "http://127.0.0.1:8000"
TIMEOUT_S: Final = 10.0
_MAX_TEXT: Final = 300


class AdminRefused(ModelyardError):
    """The platform said no, or could not be asked. The text says which; `status` is HTTP's."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class AdminClient:
    """GET, POST and DELETE of `/admin/...`. Raises AdminRefused: a sentence, and exit code 1.

    Redirects are not followed: the key would go along.
    """

    def __init__(
        self, url: str, api_key: str, transport: httpx.BaseTransport | None = None
    ) -> None:
        """Raises ConfigError for a URL or a key that HTTP cannot carry."""
        if not _is_http(url):
            raise ConfigError(f"MODELYARD_URL is {url!r}: write http://host:port, or https://host")
        if not api_key.isascii() or not api_key.isprintable():
            raise ConfigError("MODELYARD_API_KEY is no key: send one of `modelyard keys new`")
        self._url = url
        self._http = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {api_key}"},
            timeout=TIMEOUT_S,
            transport=transport,
        )

    @classmethod
    def from_settings(cls, settings: Settings) -> AdminClient:
        """MODELYARD_URL or the running local platform, with MODELYARD_API_KEY.

        Raises ConfigError when there is no key.
        """
        if settings.api_key is None:
            raise ConfigError("set MODELYARD_API_KEY to a key that has the role admin")
        return cls(url_of(settings), settings.api_key)

    def get(self, path: str, params: Mapping[str, str] | None = None) -> Any:
        """The JSON answer to a GET. `path` begins with `/`."""
        return self._ask("GET", path, params=dict(params or {}))

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON answer to a POST of a JSON object."""
        return self._ask("POST", path, json=dict(body))

    def delete(self, path: str) -> Any:
        """The JSON answer to a DELETE."""
        return self._ask("DELETE", path)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _ask(self, method: str, path: str, **arguments: Any) -> Any:
        try:
            answer = self._http.request(method, path, **arguments)
        except httpx.HTTPError as error:
            raise AdminRefused(
                f"no platform answers at {self._url} ({error}): start it, or set MODELYARD_URL"
            ) from error
        try:
            record = answer.json()
        except ValueError as error:
            raise AdminRefused(
                f"{self._url} answered {answer.status_code} and no JSON, so something else than "
                f"modelyard may be there: {answer.text[:_MAX_TEXT]!r}",
                answer.status_code,
            ) from error
        if answer.status_code != 200:
            raise AdminRefused(_message(record, answer.status_code), answer.status_code)
        return record


def url_of(settings: Settings) -> str:
    """Where the platform is: as set, or the one that `modelyard up` started, or Serve's default."""
    if settings.url is not None:
        return settings.url
    running = LocalCluster(settings).running()
    return DEFAULT_URL if running is None else f"http://127.0.0.1:{running.http_port}"


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        httpx.URL(url)
        # `port` raises for a word, and for a number that is none.
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (ValueError, httpx.InvalidURL):
        return False


def _message(record: Any, status: int) -> str:
    """The sentence of an error answer, in either of the contract's two shapes."""
    inner = record.get("error", record) if isinstance(record, dict) else None
    message = inner.get("message") if isinstance(inner, dict) else None
    return message if isinstance(message, str) and message else f"the platform answered {status}"
