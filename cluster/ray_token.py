"""Ray's cluster token: whoever has it may run code on every node."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from cluster.local_environment import ray_command
from cluster.running import StartFailed


def ray_token() -> str:
    """Ray's cluster token. Raises StartFailed when there is none."""
    try:
        return _token_file().read_text().strip()
    except OSError as error:
        raise StartFailed(f"cannot read Ray's token {_token_file()}: run `modelyard up`") from error


def ensure_ray_token() -> None:
    if _token_file().exists():
        return
    done = subprocess.run(
        [ray_command("ray"), "get-auth-token", "--generate"],
        env=os.environ | {"RAY_AUTH_MODE": "token"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise StartFailed(f"could not make Ray's token: {done.stderr.strip()[-300:]}")
    _token_file().chmod(0o600)  # Ray leaves it readable by everybody


def _token_file() -> Path:
    return Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or "~/.ray/auth_token").expanduser()
