"""What `modelyard status` makes of Serve's own REST when it cannot join the cluster."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from cluster import serve_rest
from cluster.observe import Unreachable
from cluster.serve_rest import apps_by_rest

RUNNING: Any = SimpleNamespace(dashboard_url="http://127.0.0.1:8265")
APP = {
    "name": "gen@1.0.0",
    "status": "DEPLOYING",
    "message": "",
    "deployments": {
        "Generator": {
            "message": "waits for a node",
            "target_num_replicas": 2,
            "replicas": [{"state": "RUNNING"}, {"state": "STARTING"}],
        }
    },
}


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_rest, "ray_token", lambda: "a-token")


def test_apps_are_read_with_rays_token() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"] == "Bearer a-token"
        assert request.url.path == "/api/serve/applications/"
        return httpx.Response(200, json={"applications": {"gen@1.0.0": APP}})

    [view] = apps_by_rest(RUNNING, httpx.MockTransport(answer))
    assert (view.name, view.status, view.message) == ("gen@1.0.0", "DEPLOYING", "waits for a node")
    assert (view.ready, view.starting, view.desired) == (1, 1, 2)
    assert view.replicas == ()


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(500),
        httpx.Response(200, text="<html>"),
        httpx.Response(200, json={}),
        httpx.Response(200, json={"applications": {"x": None}}),
    ],
)
def test_an_odd_answer_is_said(answer: httpx.Response) -> None:
    with pytest.raises(Unreachable, match="REST"):
        apps_by_rest(RUNNING, httpx.MockTransport(lambda _: answer))
