import os
import stat
from pathlib import Path

import pytest

from modelyard.config.settings import Settings
from modelyard.contract.errors import ConfigError


def settings_in(folder: Path, **environ: str) -> Settings:
    return Settings.from_environment({"MODELYARD_HOME": str(folder)} | environ)


def test_everything_lies_under_home_unless_said_otherwise(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    assert settings.secret_file == tmp_path / "secret"
    assert (settings.models, settings.logs, settings.run) == (
        tmp_path / "models",
        tmp_path / "logs",
        tmp_path / "run",
    )


@pytest.mark.parametrize("environ", [{}, {"MODELYARD_HOME": ""}])
def test_home_is_the_users_by_default(environ: dict[str, str]) -> None:
    assert Settings.from_environment(environ).home == Path.home() / ".modelyard"


def test_a_tilde_and_a_relative_path_become_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = Settings.from_environment(
        {"MODELYARD_HOME": "here", "MODELYARD_SECRET_FILE": "~/key"}
    )
    assert settings.home == tmp_path / "here"
    assert settings.secret_file == Path.home() / "key"


def test_the_environment_is_read_when_none_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODELYARD_HOME", str(tmp_path))
    assert Settings.from_environment().home == tmp_path


def test_a_missing_secret_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"No such file.*modelyard up"):
        settings_in(tmp_path).secret()


def test_a_short_secret_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"s" * 31 + b"\n\n")
    with pytest.raises(ConfigError, match="shorter than 32 bytes"):
        settings_in(tmp_path).secret()


def test_a_secret_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    settings = settings_in(tmp_path / "new" / "home")
    settings.ensure_secret()
    made = settings.secret()
    assert len(made) == 64
    assert stat.S_IMODE(settings.secret_file.stat().st_mode) == 0o600
    settings.ensure_secret()
    assert settings.secret() == made


def test_a_secret_given_by_the_operator_is_left_alone(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_bytes(os.urandom(8).hex().encode() * 2 + b"\n")
    settings = settings_in(tmp_path, MODELYARD_SECRET_FILE=str(given))
    settings.ensure_secret()
    assert settings.secret() == given.read_bytes().strip()


@pytest.mark.parametrize("name", ["MODELYARD_HOME", "MODELYARD_SECRET_FILE"])
def test_the_home_of_nobody_is_told(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} is '~nosuchuser/x'.*give an absolute path"):
        Settings.from_environment({name: "~nosuchuser/x"})


def test_the_cache_lies_under_home_and_has_no_limit_unless_said_otherwise(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    assert (settings.cache, settings.cache_limit_gb, settings.image) == (
        tmp_path / "cache",
        None,
        None,
    )


def test_cache_limit_and_image_are_taken_from_the_environment(tmp_path: Path) -> None:
    image = "registry.example.com/runtime@sha256:" + "0" * 64
    settings = settings_in(
        tmp_path,
        MODELYARD_CACHE=str(tmp_path / "fast"),
        MODELYARD_CACHE_LIMIT_GB="0.5",
        MODELYARD_IMAGE=image,
    )
    assert (settings.cache, settings.cache_limit_gb, settings.image) == (
        tmp_path / "fast",
        0.5,
        image,
    )


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "ten", "10GB"])
def test_a_limit_that_is_no_positive_number_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=f"MODELYARD_CACHE_LIMIT_GB is '{text}': write a number"):
        settings_in(tmp_path, MODELYARD_CACHE_LIMIT_GB=text)


@pytest.mark.parametrize(("text", "on"), [(None, False), ("", False), ("0", False), ("1", True)])
def test_gpus_are_emulated_where_it_is_said(tmp_path: Path, text: str | None, on: bool) -> None:
    given = {} if text is None else {"MODELYARD_EMULATED_GPUS": text}
    assert settings_in(tmp_path, **given).emulated_gpus is on


def test_a_switch_that_is_neither_on_nor_off_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="MODELYARD_EMULATED_GPUS is 'yes': write 1 for on"):
        settings_in(tmp_path, MODELYARD_EMULATED_GPUS="yes")
