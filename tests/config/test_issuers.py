from typing import Any

import pytest

from modelyard.config.table import parse_table
from modelyard.contract.errors import ConfigError
from modelyard.testing.in_memory import table_record

ISSUER = {"issuer": "https://i.test", "audience": "modelyard", "jwks": "https://i.test/keys"}


def issuers(*changes: dict[str, Any]) -> dict[str, Any]:
    return table_record(issuers=[ISSUER | one for one in changes])


@pytest.mark.parametrize(
    "jwks",
    [
        "https://i.test/keys?tenant=a",
        "https://10.0.0.7:8443/keys",
        "http://127.0.0.1:8080/keys",
        "http://localhost/keys",
        "http://[::1]:80/keys",
        "file:///etc/modelyard/keys.json",
    ],
)
def test_keys_come_over_https_or_from_this_machine(jwks: str) -> None:
    (issuer,) = parse_table(issuers({"jwks": jwks})).issuers
    assert issuer.is_file == jwks.startswith("file:")


@pytest.mark.parametrize(
    ("jwks", "why"),
    [
        ("http://i.test/keys", "use https://"),
        ("http://10.0.0.7/keys", "use https://"),
        ("http://127.0.0.1.i.test/keys", "use https://"),
        ("http://127.0.0.1@i.test/keys", "no user"),
        ("https://a:b@i.test/keys", "no user"),
        ("https://i.test/keys#a", "no fragment"),
        ("https:///keys", "no host"),
        ("https://i.test:x/keys", "no URL"),
        ("https://[::1/keys", "no URL"),
        ("file://keys.json", "jwks"),
        ("ftp://i.test/keys", "jwks"),
        ("", "jwks"),
    ],
)
def test_a_source_of_keys_that_could_be_another_is_refused(jwks: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse_table(issuers({"jwks": jwks}))


@pytest.mark.parametrize("algorithm", ["none", "HS256", "RS384", "PS256", "ES256K"])
def test_no_other_algorithm_can_be_allowed(algorithm: str) -> None:
    with pytest.raises(ConfigError, match="algorithms"):
        parse_table(issuers({"algorithms": [algorithm]}))


@pytest.mark.parametrize(
    ("roles", "why"),
    [
        (["admin"], "could call nothing"),
        ([], "could call nothing"),
        (["invoke", "admin"], "which sees all tenants"),
        (["invoke", "scrape"], "which sees all tenants"),
        (["root"], "roles"),
    ],
)
def test_tokens_have_the_roles_of_a_tenant(roles: list[str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse_table(issuers({"roles": roles}))
    (issuer,) = parse_table(issuers({"roles": ["invoke", "evaluate"]})).issuers
    assert issuer.roles == ("invoke", "evaluate")


def test_two_issuers_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="two issuers have one name"):
        parse_table(issuers({}, {"audience": "another"}))
