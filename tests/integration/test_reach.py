"""Models are reached through the ingress only: every port, and every handle, is tried."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from cluster.running import run_of

pytestmark = pytest.mark.integration

# Text that only a model or the ingress could have written. (Serve itself answers /-/routes on each
# replica's port with the app's name; it reaches nothing.)
TELLTALE = ("Paris", "embedding", "relevance_score", "support-assistant", "smollm2")
PATHS = ("/", "/abc", "/v1/chat/completions", "/v1/embeddings", "/call", "/stream")
BODY = json.dumps(
    {
        "model": "support-assistant",
        "messages": [{"role": "user", "content": "What is the capital of France?"}],
        "input": "x",
    }
)


def listening(platform: Any) -> dict[tuple[str, int], str]:
    """Each address on which a process of this platform listens, with the process's name."""
    found: dict[tuple[str, int], str] = {}
    state = json.loads((platform.home / "run" / "local.json").read_text())
    for process in run_of(state["run_id"], state["pid"]).processes():
        try:
            for connection in process.net_connections(kind="tcp"):
                if connection.status == psutil.CONN_LISTEN:
                    found[connection.laddr.ip, connection.laddr.port] = process.name()
        except psutil.Error:
            continue
    return found


def curl(address: tuple[str, int], path: str, *options: str) -> str:
    host = "127.0.0.1" if address[0] in ("0.0.0.0", "::") else address[0]
    host = f"[{host}]" if ":" in host else host
    command = ["curl", "-s", "-m", "2", "-i", f"http://{host}:{address[1]}{path}", *options]
    done = subprocess.run(command, capture_output=True, check=False)
    return done.stdout.decode(errors="replace")


def test_no_port_of_any_ray_process_reaches_a_model(platform: Any) -> None:
    ports = listening(platform)
    assert len(ports) > 8, "the scan found too little to mean anything"
    assert any(port == int(platform.url.rpartition(":")[2]) for _, port in ports)
    post = ("-X", "POST", "-H", "Content-Type: application/json", "-d", BODY)
    tries = list(itertools.product(sorted(ports), PATHS, ((), post)))
    with ThreadPoolExecutor(16) as pool:  # most ports speak gRPC and let curl wait
        heard = pool.map(lambda a: curl(a[0], a[1], *a[2]), tries)
        answers = [(ports[a[0]], *a[:2], text) for a, text in zip(tries, heard, strict=True)]
    spoke_http = [answer for answer in answers if answer[3].startswith("HTTP/1.1")]
    assert len(spoke_http) > len(PATHS), "nothing answered: the scan proves nothing"
    reached = [
        answer
        for answer in spoke_http
        if " 200 " in answer[3].splitlines()[0] and any(word in answer[3] for word in TELLTALE)
    ]
    assert reached == []


def test_a_handle_without_a_claim_is_refused(platform: Any, tmp_path: Path) -> None:
    """Another job of the cluster calls a shell directly: it gets a typed refusal, no answer."""
    script = tmp_path / "stray.py"
    script.write_text(STRAY)
    port = 6389 + platform.port_offset
    done = subprocess.run(
        [sys.executable, str(script), f"127.0.0.1:{port}"],
        env=os.environ | {"RAY_AUTH_MODE": "token"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["unauthenticated", "unauthenticated", "unauthenticated"]


STRAY = """
import sys
import ray
from ray import serve
from modelyard.contract.envelope import Envelope, Failure
from modelyard.tenancy.claim import Claim, sign

ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
own = Claim("demo", "k", "paid", "eu", "interactive", ("invoke",), ("*",))

def door(app, deployment):
    handle = serve.get_deployment_handle(deployment, app_name=app)
    handle._init(_run_router_in_separate_loop=True)  # a plain script has no loop of its own
    return handle

def ask(handle, app, claim, operation):
    envelope = Envelope(claim, app, operation, b"{}", False, 5000, "interactive", "r", "a", "m")
    answer = handle.call.remote(envelope).result(timeout_s=30)
    assert isinstance(answer, Failure), answer
    print(answer.code)

GENERATOR, EMBEDDER = "smollm2-135m-instruct@1.0.0", "all-minilm-l6-v2@1.0.0"
generator = door(GENERATOR, "Generator")
ask(generator, GENERATOR, "", "chat")
ask(generator, GENERATOR, sign(own, b"x" * 32), "chat")
ask(door(EMBEDDER, "Embedder"), EMBEDDER, "not.a-claim", "embed")
"""
