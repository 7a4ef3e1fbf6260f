"""`modelyard usage`, `why` and `override`, against a platform that a test answers for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from modelyard.cli import override as override_command
from modelyard.cli import usage as usage_command
from modelyard.cli import why as why_command
from modelyard.cli.admin_client import AdminClient
from modelyard.cli.main import app
from modelyard.config.settings import Settings
from modelyard.telemetry.request_log import RequestLog, RequestRecord

ROW = {
    "day": "2026-11-30",
    "tenant": "alpha",
    "model": "chat",
    "version": "gen@1.0.0",
    "requests": 12,
    "refused": 1,
    "input_tokens": 3000,
    "output_tokens": 400,
    "cached_tokens": 0,
}


class Site:
    """Answers by method and path, and keeps what was asked."""

    def __init__(self, answers: dict[tuple[str, str], Any]) -> None:
        self.answers = answers
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self.answers.get((request.method, request.url.path))
        if answer is None:
            return httpx.Response(404, json={"error": {"message": "there is none"}})
        return httpx.Response(200, json=answer)

    def client(self, settings: Settings) -> AdminClient:
        return AdminClient("http://test", "my_ops-1_secret", httpx.MockTransport(self))


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Site:
    made = Site({})
    for module in (usage_command, why_command, override_command):
        monkeypatch.setattr(
            module, "AdminClient", type("Client", (), {"from_settings": staticmethod(made.client)})
        )
    monkeypatch.setenv("MODELYARD_HOME", str(tmp_path))
    monkeypatch.setenv("MODELYARD_API_KEY", "my_ops-1_secret")
    return made


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_usage_is_a_table_with_a_total(site: Site) -> None:
    site.answers["GET", "/admin/usage"] = {"usage": [ROW, ROW | {"model": "embed"}]}
    lines = run("usage").stdout.splitlines()
    assert lines[0].split()[:5] == ["day", "tenant", "model", "version", "requests"]
    assert lines[-1].split() == ["total", "24", "2", "6000", "800", "0"]
    assert dict(site.asked[0].url.params) == {}


def test_usage_of_one_tenant_and_as_json(site: Site) -> None:
    site.answers["GET", "/admin/usage"] = {"usage": [ROW]}
    assert json.loads(run("usage", "--tenant", "alpha", "-o", "json").stdout) == [ROW]
    assert dict(site.asked[0].url.params) == {"tenant": "alpha"}


def test_no_usage_is_said(site: Site) -> None:
    site.answers["GET", "/admin/usage"] = {"usage": []}
    assert run("usage").stdout == "nothing was used\n"


def test_why_asks_every_ingress(site: Site) -> None:
    line = {"ts": "t", "request_id": "r-1", "route": "/v1/generate", "tenant": "alpha"}
    site.answers["GET", "/admin/why/r-1"] = {"lines": [line]}
    text = run("why", "r-1").stdout
    assert text.startswith("t: /v1/generate for alpha")
    assert json.loads(run("why", "r-1", "-o", "json").stdout)["lines"] == [line]


def log_of(home: Path, request_id: str) -> None:
    log = RequestLog(home / "logs", "i-1")
    log.write(RequestRecord("t", request_id, "/v1/generate"))
    log.close()


def test_why_reads_this_machines_logs_when_the_platform_cannot_say(
    site: Site, tmp_path: Path
) -> None:
    log_of(tmp_path, "r-2")
    assert run("why", "r-2").stdout.startswith("t: /v1/generate")
    missing = run("why", "r-3")
    assert missing.exit_code == 1
    assert "there is none" in missing.stderr


def test_why_says_once_that_there_is_none(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(request: httpx.Request) -> httpx.Response:
        return httpx.Response(404, json={"error": {"message": "no log holds the request r-3"}})

    client = AdminClient("http://test", "my_ops-1_secret", httpx.MockTransport(absent))
    monkeypatch.setattr("modelyard.cli.why.AdminClient.from_settings", lambda settings: client)
    missing = run("why", "r-3")
    assert missing.exit_code == 1
    assert missing.stderr.count("no log holds the request") == 1
    assert "was read too" in missing.stderr


def test_why_reads_them_without_a_key_and_says_so(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MODELYARD_API_KEY")
    log_of(tmp_path, "r-2")
    assert run("why", "r-2").exit_code == 0
    missing = run("why", "r-3")
    assert missing.exit_code == 1
    assert "set MODELYARD_API_KEY" in missing.stderr
    assert site.asked == []


def test_an_override_is_set_listed_and_removed(site: Site) -> None:
    site.answers["POST", "/admin/overrides"] = {"id": "o-1", "revision": 3}
    made = run(
        "override", "add", "floor", "gen@1.0.0", "--value", "2", "--for", "60", "--reason", "x"
    )
    assert made.stdout == "o-1: floor gen@1.0.0 for 60 s\n"
    assert json.loads(site.asked[0].content) == {
        "kind": "floor",
        "target": "gen@1.0.0",
        "value": 2.0,
        "expires_in_s": 60.0,
        "reason": "x",
    }
    listed = {"id": "o-1", "kind": "floor", "target": "gen@1.0.0", "value": 2.0}
    listed |= {"author": "ops-1", "reason": "x", "expires_in_s": 42.4}
    site.answers["GET", "/admin/overrides"] = {"overrides": [listed]}
    text = run("override", "list").stdout
    assert text == "o-1  floor gen@1.0.0 2  for 42 s more  by ops-1: x\n"
    site.answers["DELETE", "/admin/overrides/o-1"] = {"removed": True}
    assert run("override", "remove", "o-1").stdout == "o-1 is removed\n"


def test_what_may_wait_for_a_route_is_set_and_listed(site: Site) -> None:
    target = "route:support-assistant/max_queued_requests"
    site.answers["POST", "/admin/overrides"] = {"id": "o-2", "revision": 4}
    made = run(
        *("override", "add", "limit", target),
        *("--value", "20", "--for", "600", "--reason", "a sale"),
    )
    assert made.stdout == f"o-2: limit {target} for 600 s\n"
    sent = json.loads(site.asked[0].content)
    assert (sent["kind"], sent["target"], sent["value"]) == ("limit", target, 20.0)
    listed = {"id": "o-2", "kind": "limit", "target": target, "value": 20.0}
    listed |= {"author": "ops-1", "reason": "a sale", "expires_in_s": 599.6}
    site.answers["GET", "/admin/overrides"] = {"overrides": [listed]}
    assert run("override", "list").stdout == (
        f"o-2  limit {target} 20  for 600 s more  by ops-1: a sale\n"
    )


def test_the_help_of_an_override_names_the_limits_of_a_route() -> None:
    assert "route:ALIAS/max_queued_requests" in "".join(
        run("override", "add", "--help").stdout.split("\n")
    )


def test_a_freeze_sends_no_value_and_an_unknown_kind_nothing(site: Site) -> None:
    site.answers["POST", "/admin/overrides"] = {"id": "o-1"}
    run("override", "add", "freeze", "gen@1.0.0", "--for", "60", "--reason", "x")
    assert "value" not in json.loads(site.asked[0].content)
    wrong = run("override", "add", "mute", "gen@1.0.0", "--for", "60", "--reason", "x")
    assert wrong.exit_code == 2
    assert len(site.asked) == 1


def test_no_override_is_said(site: Site) -> None:
    site.answers["GET", "/admin/overrides"] = {"overrides": []}
    assert run("override", "list").stdout == "no override is in force\n"
