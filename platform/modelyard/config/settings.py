"""What a process takes from its environment. The only reader of MODELYARD_* variables."""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from modelyard.config.traces import TraceTarget, parse_ratio, parse_traces
from modelyard.contract.errors import ConfigError

DEFAULT_HOME: Final = "~/.modelyard"


@dataclass(frozen=True, slots=True)
class Settings:
    """Where this installation keeps its things.

    home: models, logs, secret and run state; MODELYARD_HOME, default ~/.modelyard.
    secret_file: the key that signs claims and answer ids; MODELYARD_SECRET_FILE, default
        home/secret.
        On a cluster of several nodes mount the same file on each.
    url: where the commands that ask a running platform find it; MODELYARD_URL, default None: the
        local one.
    api_key: the key those commands send; MODELYARD_API_KEY, default None.
    traces, trace_ratio: where every process sends its traces, and the share of requests that is
        traced; MODELYARD_TRACES, default None: nowhere, and MODELYARD_TRACE_RATIO, default 1.
    cache_folder: where this node keeps the versions it fetched (read it as `cache`);
        MODELYARD_CACHE, default None: home/cache.
    cache_limit_gb: how much of them it keeps, in 1e9 bytes; MODELYARD_CACHE_LIMIT_GB, default None:
        until the disk is full. What runs is never thrown away.
    image: the image this process runs in, by digest, compared with a manifest's; MODELYARD_IMAGE,
        default None: not compared.
    emulated_gpus: the GPUs that Ray gives out are not there, so models compute on the CPU and tell
        their GPUs all the same; MODELYARD_EMULATED_GPUS (`1` or `0`), default 0.
    """

    home: Path
    secret_file: Path
    url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    traces: TraceTarget | None = None
    trace_ratio: float = 1.0
    cache_folder: Path | None = None
    cache_limit_gb: float | None = None
    image: str | None = None
    emulated_gpus: bool = False

    @property
    def cache(self) -> Path:
        return self.cache_folder or self.home / "cache"

    @property
    def models(self) -> Path:
        return self.home / "models"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    @property
    def run(self) -> Path:
        return self.home / "run"

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Raises ConfigError for a `~` that leads nowhere, and for values that make no sense."""
        env = os.environ if environ is None else environ
        home = expand(env.get("MODELYARD_HOME") or DEFAULT_HOME, "MODELYARD_HOME").absolute()
        secret = env.get("MODELYARD_SECRET_FILE")
        own = expand(secret, "MODELYARD_SECRET_FILE") if secret else home / "secret"
        cache = env.get("MODELYARD_CACHE")
        url, api_key = env.get("MODELYARD_URL") or None, env.get("MODELYARD_API_KEY") or None
        return cls(
            home=home,
            secret_file=own,
            url=url,
            api_key=api_key,
            traces=parse_traces(env.get("MODELYARD_TRACES")),
            trace_ratio=parse_ratio(env.get("MODELYARD_TRACE_RATIO")),
            cache_folder=expand(cache, "MODELYARD_CACHE").absolute() if cache else None,
            cache_limit_gb=_limit_gb(env.get("MODELYARD_CACHE_LIMIT_GB")),
            image=env.get("MODELYARD_IMAGE") or None,
            emulated_gpus=_switch(env.get("MODELYARD_EMULATED_GPUS"), "MODELYARD_EMULATED_GPUS"),
        )

    def secret(self) -> bytes:
        """The signing key. Raises ConfigError when it is missing or too short to be one."""
        try:
            key = self.secret_file.read_bytes().strip()
        except OSError as error:
            raise ConfigError(
                f"cannot read the signing key {self.secret_file} ({error.strerror}): run "
                "`modelyard up`, or set MODELYARD_SECRET_FILE to the same file on every node"
            ) from error
        if len(key) < 32:
            raise ConfigError(
                f"the signing key {self.secret_file} is shorter than 32 bytes: make a new one"
            )
        return key

    def ensure_secret(self) -> None:
        """Make the key if there is none. It appears whole, readable by its owner alone."""
        if self.secret_file.exists():
            return
        self.secret_file.parent.mkdir(parents=True, exist_ok=True)
        aside = self.secret_file.with_name(f".{self.secret_file.name}-{secrets.token_hex(4)}")
        with os.fdopen(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
        try:
            # A link, not a rename: of two that start at once, both must end up with one key.
            os.link(aside, self.secret_file)
        except FileExistsError:
            pass
        finally:
            aside.unlink()


def expand(path: str, name: str) -> Path:
    """`path` with its `~` replaced. Raises ConfigError, calling the setting by its `name`."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ConfigError(
            f"{name} is {path!r}, and there is no such user's home: give an absolute path"
        ) from error


def _switch(text: str | None, name: str) -> bool:
    if text not in (None, "", "0", "1"):
        raise ConfigError(f"{name} is {text!r}: write 1 for on, or 0 for off")
    return text == "1"


def _limit_gb(text: str | None) -> float | None:
    if not text:
        return None
    try:
        limit_gb = float(text)
    except ValueError:
        limit_gb = math.nan
    if not 0.0 < limit_gb < math.inf:
        raise ConfigError(
            f"MODELYARD_CACHE_LIMIT_GB is {text!r}: write a number of GB above 0, or leave it out "
            "to let the cache grow until the disk is full"
        )
    return limit_gb
