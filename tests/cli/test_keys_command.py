import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from modelyard.cli import keys as keys_command
from modelyard.cli.admin_client import AdminClient, AdminRefused
from modelyard.cli.keys import app
from modelyard.config.settings import Settings
from modelyard.config.table import parse_table
from modelyard.config.tenants import Key
from modelyard.contract.errors import ConfigError
from modelyard.tenancy.keys import hash_key, key_id
from modelyard.testing.in_memory import table_record


def made(*arguments: str) -> tuple[str, dict[str, Any]]:
    """The key that was printed, and its line for the table."""
    result = CliRunner().invoke(app, ["new", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    key, line = result.stdout.splitlines()
    (record,) = yaml.safe_load(line)
    return key, record


def test_a_key_is_printed_with_the_line_that_admits_it() -> None:
    key, record = made("--tenant", "alpha")
    assert record["tenant"] == "alpha"
    assert record["sha256"] == hash_key(key)
    assert record["id"] == key_id(key)
    assert record["id"].startswith("alpha-")
    assert record["roles"] == ["invoke"]
    assert key not in str(record)


def test_the_line_fits_a_table() -> None:
    _, record = made("--tenant", "alpha", "--id", "mine", "--role", "invoke", "--role", "admin")
    table = parse_table(table_record(keys=[record]))
    assert table.keys == (
        Key(id="mine", tenant="alpha", sha256=record["sha256"], roles=("invoke", "admin")),
    )


@settings(max_examples=30, deadline=None)
@given(tenant=st.from_regex(r"[A-Za-z0-9._][A-Za-z0-9._-]{0,63}", fullmatch=True))
def test_every_tenant_that_a_table_may_hold_can_have_a_key(tenant: str) -> None:
    _, record = made("--tenant", tenant)
    table = table_record(tenants={tenant: {"models": ["*"]}}, keys=[record])
    assert parse_table(table).keys[0].tenant == tenant


@pytest.mark.parametrize("tenant", ["my_team", "123", "null", "1e5", "yes", "a" * 64])
def test_odd_names_of_tenants_stay_names(tenant: str) -> None:
    _, record = made("--tenant", tenant)
    assert record["tenant"] == tenant
    assert isinstance(record["id"], str)


def test_an_id_that_cannot_be_in_a_key_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be the id of a key"):
        CliRunner().invoke(
            app, ["new", "--tenant", "alpha", "--id", "my_id"], catch_exceptions=False
        )


def test_a_role_that_does_not_exist_is_refused() -> None:
    result = CliRunner().invoke(app, ["new", "--tenant", "alpha", "--role", "root"])
    assert result.exit_code == 2
    assert "invoke" in result.stderr


def test_two_keys_differ() -> None:
    assert made("--tenant", "alpha")[0] != made("--tenant", "alpha")[0]


@pytest.mark.parametrize("arguments", [["--tenant", "a b", "--id", "x"], ["--role", "evaluate"]])
def test_a_key_that_no_table_would_take_is_not_printed(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, ["new", "--tenant", "alpha", *arguments])
    assert isinstance(result.exception, ConfigError)
    assert result.stdout == ""


def test_a_key_may_end_by_itself() -> None:
    _, record = made("--tenant", "alpha", "--expires", "30d")
    (key,) = parse_table(table_record(keys=[record])).keys
    assert key.expires is not None
    left = key.expires - datetime.now(UTC)
    assert timedelta(days=29, hours=23) < left <= timedelta(days=30)


@pytest.mark.parametrize("expires", ["soon", "2020-01-01"])
def test_a_wrong_expiry_makes_no_key(expires: str) -> None:
    result = CliRunner().invoke(app, ["new", "--tenant", "alpha", "--expires", expires])
    assert isinstance(result.exception, ConfigError)
    assert result.stdout == ""


def test_an_operators_key_has_no_tenant() -> None:
    key, record = made("--role", "admin", "--role", "scrape")
    assert "tenant" not in record
    assert record["id"] == key_id(key)
    assert parse_table(table_record(keys=[record])).keys[0].roles == ("admin", "scrape")


def test_a_key_that_calls_models_needs_a_tenant() -> None:
    result = CliRunner().invoke(app, ["new"])
    assert isinstance(result.exception, ConfigError)
    assert "names no tenant" in str(result.exception)


def table_file(folder: Path, **changes: Any) -> str:
    path = folder / "table.yaml"
    path.write_text(yaml.safe_dump(table_record(**changes)))
    return str(path)


def test_the_keys_of_a_file_are_listed_without_their_hashes(tmp_path: Path) -> None:
    keys = table_record()["keys"]
    keys[0]["expires"] = "2020-01-01T00:00:00Z"
    path = table_file(tmp_path, keys=keys)
    result = CliRunner().invoke(app, ["list", "--config", path], catch_exceptions=False)
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["id", "tenant", "roles", "expires", "state"]
    assert lines[1] == ["alpha-1", "alpha", "invoke", "2020-01-01T00:00:00Z", "expired"]
    assert lines[4] == ["ops-1", "-", "admin,scrape", "never", "active"]
    assert keys[0]["sha256"] not in result.stdout


def test_the_keys_of_a_serve_config_are_listed_as_json() -> None:
    result = CliRunner().invoke(
        app, ["list", "--config", "configs/local.serve.yaml", "-o", "json"], catch_exceptions=False
    )
    assert [one["id"] for one in json.loads(result.stdout)][:1] == ["demo-1"]


@pytest.mark.parametrize("text", ["applications: []", "applications: [{name: a}]", "schema: x"])
def test_a_file_without_a_table_is_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    result = CliRunner().invoke(app, ["list", "--config", str(path)])
    assert isinstance(result.exception, ConfigError)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, Any]]:
    """Method, path and body of what a running platform was asked."""
    seen: list[tuple[str, str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else None
        seen.append((request.method, request.url.raw_path.decode(), body))
        if request.method == "POST":
            return httpx.Response(200, json={"key": "alpha-1", "revoked": True})
        line = {"id": "a-1", "tenant": None, "roles": ["admin"], "expires": None}
        ended = {"id": "a-2", "tenant": "a", "expires": "2020-01-01T00:00:00+00:00"}
        lines = [line | {"revoked": True}, line | ended | {"revoked": False}]
        return httpx.Response(200, json={"keys": lines})

    def made_for_tests(settings: Settings) -> AdminClient:
        return AdminClient("http://platform.test", "my_ops_key", httpx.MockTransport(answer))

    monkeypatch.setattr(AdminClient, "from_settings", made_for_tests)
    return seen


def test_a_key_is_revoked_by_its_id(asked: list[tuple[str, str, Any]]) -> None:
    result = CliRunner().invoke(app, ["revoke", "alpha-1", "--reason", "lost laptop"])
    assert result.exit_code == 0
    assert "alpha-1 is revoked" in result.stdout
    assert "Remove its line" in result.stdout
    ((method, path, body),) = asked
    assert (method, path) == ("POST", "/admin/keys/alpha-1/revoke")
    assert body == {"reason": "lost laptop"}


def test_an_id_stays_one_part_of_the_path(asked: list[tuple[str, str, Any]]) -> None:
    result = CliRunner().invoke(app, ["revoke", "../a?b", "-o", "json"])
    assert json.loads(result.stdout)["revoked"] is True
    assert asked[0][1] == "/admin/keys/..%2Fa%3Fb/revoke"


def test_a_key_itself_is_sent_nowhere(asked: list[tuple[str, str, Any]]) -> None:
    result = CliRunner().invoke(app, ["revoke", "my_alpha-1_for-tests-of-modelyard"])
    assert result.exit_code == 2
    assert asked == []


def test_the_running_platforms_keys_are_listed(asked: list[tuple[str, str, Any]]) -> None:
    result = CliRunner().invoke(app, ["list"])
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[1] == ["a-1", "-", "admin", "never", "revoked"]
    assert (lines[2][0], lines[2][4]) == ("a-2", "expired")
    assert asked == [("GET", "/admin/keys", None)]


@pytest.mark.parametrize("answer", [[], {}, {"keys": [{}]}, {"keys": [1]}, {"keys": None}])
def test_an_answer_without_keys_is_a_sentence(answer: Any) -> None:
    with pytest.raises(AdminRefused, match="no list of keys"):
        keys_command._listed(answer)
