"""What a person sees when a command meets something odd: one sentence and exit code 1."""

import sys
from pathlib import Path

import pytest

from modelyard.cli.main import main


def said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> str:
    monkeypatch.setattr(sys, "argv", ["modelyard", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 1
    text = capsys.readouterr().err
    assert text.startswith("modelyard: ")
    assert len(text.splitlines()) == 1
    return text


def test_the_home_of_nobody(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODELYARD_HOME", "~nosuchuser/x")
    assert "no such user's home" in said(capsys, monkeypatch, "check", __file__)


def test_a_home_that_is_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.write_text("not a folder")
    monkeypatch.setenv("MODELYARD_HOME", str(home))
    text = said(capsys, monkeypatch, "down")
    assert str(home) in text
    assert "MODELYARD_HOME" in text


def test_a_home_that_cannot_be_made(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODELYARD_HOME", "/proc/modelyard")
    assert "/proc/modelyard" in said(capsys, monkeypatch, "down")
