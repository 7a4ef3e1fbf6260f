"""Apps that Serve gave up: dropped, waited for, and left alone where a replica still serves."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from cluster.observe import AppView, Unreachable
from cluster.running import StartFailed
from modelyard.cli.failed_apps import DELETED_WITHIN_S, drop_given_up, given_up, without

CONFIG = """\
http_options: {port: 8000}
applications:
- {name: control, import_path: a:b}
- {name: gen@1, import_path: a:b, args: {artifact: x}}
"""


def app(name: str, status: str = "RUNNING", running: int = 0) -> AppView:
    return AppView(name, status, "", {"RUNNING": running} if running else {}, ())


class Serve:
    """Whose app gen@1 failed; it deletes what a config leaves out after `deletes_after` looks."""

    def __init__(self, *apps: AppView, deletes_after: int = 2) -> None:
        self.apps = list(apps)
        self.deployed: list[list[str]] = []
        self.now = 0.0
        self._left = deletes_after

    def read(self) -> list[AppView]:
        if self.deployed:
            self._left -= 1
            if self._left == 0:
                raise Unreachable("a busy dashboard")
            if self._left < 0:
                return [one for one in self.apps if one.name in self.deployed[-1]]
        return self.apps

    def deploy(self, config: Path) -> None:
        record = yaml.safe_load(config.read_text())
        self.deployed.append([one["name"] for one in record["applications"]])

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def dropped(self, tmp_path: Path) -> bool:
        config = tmp_path / "mine.yaml"
        config.write_text(CONFIG)
        return drop_given_up(config, self.read, self.deploy, lambda: self.now, self.sleep)


def test_only_apps_that_failed_without_a_running_replica_are_given_up() -> None:
    apps = [
        app("gen@1", "DEPLOY_FAILED"),
        app("emb@1", "DEPLOY_FAILED", running=1),
        app("int@1", "UNHEALTHY"),
        app("control", running=1),
    ]
    assert given_up(apps) == ({"gen@1"}, {"emb@1"})


def test_a_config_without_an_app_is_else_the_same() -> None:
    record = yaml.safe_load(CONFIG)
    del record["applications"][1]
    assert yaml.safe_load(without(CONFIG, {"gen@1"})) == record


def test_a_failed_app_is_dropped_and_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    serve = Serve(app("control", running=1), app("gen@1", "DEPLOY_FAILED"))
    assert serve.dropped(tmp_path)
    assert serve.deployed == [["control"]]
    assert serve.now > 0
    assert capsys.readouterr().out == "  gen@1 had failed: trying it again\n"


def test_an_app_whose_older_replicas_serve_is_left_and_the_operator_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    serve = Serve(app("gen@1", "DEPLOY_FAILED", running=1))
    assert not serve.dropped(tmp_path)
    assert serve.deployed == []
    assert "gen@1 had failed to update" in capsys.readouterr().out


def test_nothing_is_dropped_where_nothing_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    serve = Serve(app("gen@1", running=1))
    assert not serve.dropped(tmp_path)
    assert (serve.deployed, capsys.readouterr().out) == ([], "")


def test_a_failed_app_that_the_config_names_no_more_is_not_tried_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    serve = Serve(app("gen@0", "DEPLOY_FAILED"))
    assert not serve.dropped(tmp_path)
    assert (serve.deployed, capsys.readouterr().out) == ([], "")


def test_an_app_that_is_never_deleted_is_an_error(tmp_path: Path) -> None:
    serve = Serve(app("gen@1", "DEPLOY_FAILED"), deletes_after=10**6)
    with pytest.raises(StartFailed, match="not deleted gen@1 within 120 s"):
        serve.dropped(tmp_path)
    assert serve.now >= DELETED_WITHIN_S


def test_a_rest_that_stops_to_answer_is_an_error(tmp_path: Path) -> None:
    serve = Serve(app("gen@1", "DEPLOY_FAILED"))

    def read() -> list[AppView]:
        if serve.deployed:
            raise Unreachable("gone")
        return serve.apps

    serve.read = read  # type: ignore[method-assign]
    with pytest.raises(StartFailed, match="does not answer"):
        serve.dropped(tmp_path)
