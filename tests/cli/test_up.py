"""`modelyard up` on a platform that runs: what its deploy would drop is looked at first."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster.observe import AppView
from cluster.ports import LocalPorts
from cluster.running import Running
from modelyard.cli import up as module
from modelyard.cli.check_live import LiveCheck
from modelyard.config.target import Deployment, read_target
from modelyard.contract.errors import ConfigError
from placement.changes import Change, Effect

LOCAL = Path(__file__).parents[2] / "configs" / "local.serve.yaml"
RUNNING = Running("r", 1, 1.0, LocalPorts(), 8000, True, config_digest="another")
STEPS = ("require_live", "_deploy", "wait_until_ready", "_show")


class Cluster:
    """Remembers what was brought up."""

    def __init__(self) -> None:
        self.remembered: list[Running] = []

    def remember(self, state: Running) -> None:
        self.remembered.append(state)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps in their order, none of which does anything."""
    steps: list[str] = []

    def record(name: str, answer: Any = None) -> None:
        def step(*_: Any, **__: Any) -> Any:
            steps.append(name)
            return answer

        monkeypatch.setattr(module, name, step)

    for name in STEPS:
        record(name, LiveCheck((Change("a@1", Effect.DELETE),), ()))
    monkeypatch.setattr(module, "apps_by_rest", lambda _: [])
    monkeypatch.setattr(module, "code_digest", lambda: "c")
    return steps


def bring_up(running: Running = RUNNING, *, serves: bool = True) -> Cluster:
    cluster = Cluster()
    target: Deployment = read_target(LOCAL)
    module._bring_up(cluster, running, LOCAL, target, 1.0, serves=serves)  # type: ignore[arg-type]
    return cluster


def test_a_deploy_over_what_runs_is_looked_at_first(
    done: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert bring_up().remembered
    assert done == list(STEPS)
    assert "  DELETE    a@1\n" in capsys.readouterr().out


def test_nothing_is_deployed_where_that_would_drop_what_is_needed(
    done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise ConfigError("this deploy would drop what is still needed")

    monkeypatch.setattr(module, "require_live", refuse)
    with pytest.raises(ConfigError, match="still needed"):
        bring_up()
    assert done == []


def test_apps_that_failed_are_not_tried_again_by_a_deploy_that_nobody_looked_at(
    done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To retry one, the config is deployed without it, and that drops what it does not name."""
    app = "all-minilm-l6-v2@1.0.0"
    looks = iter([[AppView(app, "DEPLOY_FAILED", "", {}, ())], []])
    monkeypatch.setattr(module, "apps_by_rest", lambda _: next(looks))
    digest = hashlib.sha256(LOCAL.read_bytes()).hexdigest()
    bring_up(replace(RUNNING, config_digest=digest))
    assert done == ["require_live", "_deploy", *STEPS]


def test_a_fresh_platform_and_one_with_this_very_config_have_nothing_to_drop(
    done: list[str],
) -> None:
    bring_up(serves=False)
    assert done == list(STEPS[1:])
    done.clear()
    digest = hashlib.sha256(LOCAL.read_bytes()).hexdigest()
    bring_up(replace(RUNNING, config_digest=digest, code_digest="c"))
    assert done == list(STEPS[2:])
