import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from modelyard.cli.admin_client import (
    DEFAULT_URL,
    AdminClient,
    AdminRefused,
    url_of,
)
from modelyard.config.settings import Settings
from modelyard.contract.errors import ConfigError

Answer = Callable[[httpx.Request], httpx.Response]


def client(answer: Answer) -> AdminClient:
    return AdminClient("http://platform.test", "my_ops_key", httpx.MockTransport(answer))


def test_a_question_carries_the_key_and_gets_the_answers_json() -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json={"keys": []})

    with client(answer) as admin:
        assert admin.get("/admin/keys", {"tenant": "a b"}) == {"keys": []}
        assert admin.post("/admin/keys/a%2Fb/revoke", {"reason": "lost"}) == {"keys": []}
        assert admin.delete("/admin/hold") == {"keys": []}
    get, post, delete = asked
    assert (delete.method, delete.url.path) == ("DELETE", "/admin/hold")
    assert str(get.url) == "http://platform.test/admin/keys?tenant=a+b"
    assert get.headers["authorization"] == "Bearer my_ops_key"
    assert post.url.raw_path == b"/admin/keys/a%2Fb/revoke"
    assert json.loads(post.content) == {"reason": "lost"}


@pytest.mark.parametrize(
    ("status", "record", "text"),
    [
        (403, {"error": {"message": "the key lacks the role admin"}}, "lacks the role admin"),
        (404, {"message": "there is no such key"}, "no such key"),
        (503, {"error": "odd"}, "answered 503"),
        (500, [], "answered 500"),
        (302, {}, "answered 302"),
    ],
)
def test_a_refusal_is_its_sentence(status: int, record: Any, text: str) -> None:
    with (
        client(lambda _: httpx.Response(status, json=record)) as admin,
        pytest.raises(AdminRefused, match=text) as caught,
    ):
        admin.get("/admin/keys")
    assert caught.value.status == status


def test_a_page_that_is_no_json_is_not_ours() -> None:
    with (
        client(lambda _: httpx.Response(200, text="<html>" * 1000)) as admin,
        pytest.raises(AdminRefused, match="something else than modelyard") as caught,
    ):
        admin.get("/admin/keys")
    assert len(str(caught.value)) < 500


def test_a_platform_that_is_not_there_is_a_sentence_without_the_key() -> None:
    def down(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with client(down) as admin, pytest.raises(AdminRefused, match="MODELYARD_URL") as caught:
        admin.get("/admin/keys")
    assert "my_ops_key" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("platform.test", "my_ops_key"),
        ("ftp://platform.test", "my_ops_key"),
        ("http://[", "my_ops_key"),
        ("http://", "my_ops_key"),
        ("http://a:b", "my_ops_key"),
        ("http://a:99999", "my_ops_key"),
        ("http://platform.test", "my_\u00e9"),
        ("http://platform.test", "my_a\nb"),
    ],
)
def test_a_setting_that_http_cannot_carry_is_named(url: str, key: str) -> None:
    with pytest.raises(ConfigError, match="MODELYARD_"):
        AdminClient(url, key)


def test_the_url_is_what_was_set_or_the_local_default(tmp_path: Path) -> None:
    settings = Settings(tmp_path, tmp_path / "secret", url="https://platform.test")
    assert url_of(settings) == "https://platform.test"
    assert url_of(Settings(tmp_path, tmp_path / "secret")) == DEFAULT_URL


def test_without_a_key_nothing_is_asked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="MODELYARD_API_KEY"):
        AdminClient.from_settings(Settings(tmp_path, tmp_path / "secret"))
