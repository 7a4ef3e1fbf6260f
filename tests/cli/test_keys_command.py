from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from modelyard.cli.keys import app
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
