from pathlib import Path

import pytest

from modelyard.artifacts.store import resolve
from modelyard.contract.errors import ConfigError


def test_an_absolute_path() -> None:
    assert resolve("file:///srv/models/m/1.0.0") == Path("/srv/models/m/1.0.0")


def test_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert resolve("file://~/.modelyard/models/m") == Path("/home/ann/.modelyard/models/m")


def test_escaped_characters() -> None:
    assert resolve("file:///srv/my%20models") == Path("/srv/my models")


def test_another_scheme_is_told_of_both() -> None:
    with pytest.raises(ConfigError, match=r"only file:// and s3:// .* s3://bucket/prefix/NAME"):
        resolve("ftp://x/y/z")


@pytest.mark.parametrize("uri", ["s3://bucket/m", "https://x/m", "/srv/models", "models/m", ""])
def test_other_schemes_say_what_is_supported(uri: str) -> None:
    with pytest.raises(ConfigError, match=r"file:///absolute/path or file://~/path, or s3://"):
        resolve(uri)


@pytest.mark.parametrize("uri", ["file://models/m", "file://bob@host/m", "file://~ann/m"])
def test_a_slash_too_few_is_read_as_a_host_and_refused(uri: str) -> None:
    with pytest.raises(ConfigError, match="host"):
        resolve(uri)


@pytest.mark.parametrize("uri", ["file:models/m", "file:"])
def test_a_relative_path_is_refused(uri: str) -> None:
    with pytest.raises(ConfigError, match="not absolute"):
        resolve(uri)


@pytest.mark.parametrize("uri", ["file:///m?x=1", "file:///m#x"])
def test_a_query_is_refused(uri: str) -> None:
    with pytest.raises(ConfigError, match=r"holds no \?"):
        resolve(uri)


def test_a_path_with_a_null_byte_is_refused() -> None:
    with pytest.raises(ConfigError, match="holds no %00"):
        resolve("file:///a%00b/x/1")
