"""`modelyard route explain`, against a platform that a test answers for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from modelyard.cli import route as route_command
from modelyard.cli.admin_client import AdminClient
from modelyard.cli.main import app
from modelyard.config.settings import Settings

STEPS = [
    {"name": "alias", "words": "chat", "facts": {}},
    {"name": "cell", "words": "", "facts": {}},
]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[httpx.Request]:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        steps: list[dict[str, Any]] = STEPS
        if request.url.params["tenant"] == "stranger":
            steps = [*STEPS[:1], {"name": "refused", "words": "no", "facts": {}}]
        return httpx.Response(200, json={"lines": ["alias  chat", "and so on"], "steps": steps})

    def client(settings: Settings) -> AdminClient:
        return AdminClient("http://test", "my_ops-1_secret", httpx.MockTransport(answer))

    monkeypatch.setattr(
        route_command, "AdminClient", type("C", (), {"from_settings": staticmethod(client)})
    )
    monkeypatch.setenv("MODELYARD_HOME", str(tmp_path))
    return seen


def explained(*options: str, tenant: str = "alpha") -> Result:
    arguments = ["route", "explain", "--tenant", tenant, "--model", "chat", *options]
    return CliRunner().invoke(app, arguments)


def test_the_lines_are_printed(asked: list[httpx.Request]) -> None:
    result = explained("--conversation", "c-1")
    assert (result.exit_code, result.stdout) == (0, "alias  chat\nand so on\n")
    (request,) = asked
    assert (request.method, request.url.path) == ("GET", "/admin/route")
    assert dict(request.url.params) == {"tenant": "alpha", "model": "chat", "conversation": "c-1"}


def test_the_steps_are_printed_as_json(asked: list[httpx.Request]) -> None:
    assert json.loads(explained("-o", "json").stdout) == STEPS


def test_a_refusal_is_exit_code_1(asked: list[httpx.Request]) -> None:
    assert explained(tenant="stranger").exit_code == 1


def test_what_is_missing_is_wrong_usage() -> None:
    assert CliRunner().invoke(app, ["route", "explain", "--tenant", "alpha"]).exit_code == 2
