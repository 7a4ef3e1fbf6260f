"""`modelyard check --live`, from what Serve has deployed and a reading of the board."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner

from cluster.observe import Unreachable
from cluster.serve_rest import NOTHING_READ
from modelyard.cli import check as check_module
from modelyard.cli import check_live as live
from modelyard.cli.check_live import LiveCheck, judged, require_live
from modelyard.config.check import Report
from modelyard.config.document import Document, parse_document
from modelyard.contract.errors import ConfigError
from modelyard.control.published import Published
from modelyard.testing.in_memory import post
from placement.changes import Change, Effect
from placement.refusals import Refusal

LOCAL = Path(__file__).parents[2] / "configs" / "local.serve.yaml"
TEXT = LOCAL.read_text()
KNOWN = replace(NOTHING_READ, up_s=60.0)
RUNNING: Any = SimpleNamespace(address="127.0.0.1:1")
INTENT = "support-intent@1.0.0"


def deployed() -> dict[str, dict[str, Any]]:
    return {app["name"]: app for app in copy.deepcopy(yaml.safe_load(TEXT)["applications"])}


def without_intent() -> Document:
    record = yaml.safe_load(TEXT)
    apps = [app for app in record["applications"] if app["name"] != INTENT]
    table = apps[0]["deployments"][0]["user_config"]
    table["routes"]["support-intent"] = {"stable": "all-minilm-l6-v2@1.0.0"}
    return parse_document(yaml.safe_dump(record | {"applications": apps}), "x.serve.yaml")


def test_a_file_that_is_deployed_changes_nothing() -> None:
    found = judged(deployed(), parse_document(TEXT, "x"), NOTHING_READ)
    assert found.ok
    assert {one.effect for one in found.changes} == {Effect.SAME}


def test_a_first_deploy_adds_every_app() -> None:
    found = judged({}, parse_document(TEXT, "x"), NOTHING_READ)
    assert found.ok
    assert {one.effect for one in found.changes} == {Effect.ADD}


def test_a_stable_version_that_is_left_out_is_refused() -> None:
    ready = replace(KNOWN, posts=(post(INTENT),))
    found = judged(deployed(), without_intent(), ready)
    assert not found.ok
    assert Change(INTENT, Effect.DELETE) in found.changes
    assert any(line.startswith(f"REFUSED: {INTENT} must not be") for line in found.lines())


def test_an_ingress_whose_table_is_not_ours_refuses_nothing_by_it() -> None:
    other = deployed()
    other["ingress"]["deployments"][0]["user_config"] = {"schema": "another"}
    ready = replace(KNOWN, posts=(post(INTENT),))
    assert judged(other, without_intent(), ready).ok


@pytest.mark.parametrize(
    ("percent", "key", "words"),
    [(100.0, "stable:", "is promoted: write `stable: next@1.0.0`"), (0.0, "canary:", "is over")],
)
def test_a_finished_rollout_names_the_line_that_it_has_overtaken(
    percent: float, key: str, words: str
) -> None:
    old = "support-intent: {stable: support-intent@1.0.0}"
    new = (
        "support-intent:\n          stable: support-intent@1.0.0\n"
        "          canary: next@1.0.0  # here\n          rollout: {id: r-1}"
    )
    text = TEXT.replace(old, new)
    published = Published(1, 1, (("r-1", percent),), finished=frozenset({"r-1"}))
    reading = replace(NOTHING_READ, published=published)
    (note,) = judged(deployed(), parse_document(text, "x.yaml"), reading).notes
    lines = text.split("\n")
    wanted = next(
        number
        for number, line in enumerate(lines, 1)
        if key in line and "next@" in lines[number - (0 if key == "stable:" else 1)]
    )
    assert note.startswith(f"x.yaml:{wanted}: rollout r-1 of support-intent {words}")
    assert judged(deployed(), parse_document(text, "x"), NOTHING_READ).notes == ()


def test_a_cell_whose_place_is_not_there_is_told() -> None:
    placed = TEXT.replace(
        "ray_actor_options: {num_cpus: 1}",
        "ray_actor_options: {num_cpus: 1}\n    placement_group_bundles: [{CPU: 1}]\n"
        "    placement_group_bundle_label_selector: [{modelyard/place: d7}]",
    )
    document = parse_document(placed, "x")
    (note,) = judged({}, document, NOTHING_READ, frozenset({"d1"})).notes
    assert note.startswith("smollm2-135m-instruct@1.0.0 would wait for d7")
    assert judged({}, document, NOTHING_READ, frozenset({"d7"})).notes == ()
    assert judged({}, document, NOTHING_READ).notes == ()


app = typer.Typer()
app.command()(check_module.check)


def run(monkeypatch: pytest.MonkeyPatch, found: LiveCheck, *options: str) -> Any:
    monkeypatch.setattr(check_module, "check_live", lambda path: found)
    monkeypatch.setattr(check_module, "check_file", lambda path: Report((), 6, 4, "d" * 64))
    return CliRunner().invoke(app, [str(LOCAL), "--live", *options])


def test_the_command_prints_changes_and_exits_0(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, LiveCheck((Change("a@1", Effect.RESTART, ("args",)),), ()))
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1:] == ["restart   a@1 (args)"]


def test_the_command_exits_1_on_a_refusal_and_says_all_in_json(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = LiveCheck((Change("a@1", Effect.DELETE),), (Refusal("a@1", "it answers"),), unread="x")
    assert run(monkeypatch, found).exit_code == 1
    record = json.loads(run(monkeypatch, found, "-o", "json").stdout)["live"]
    assert record == {
        "ok": False,
        "changes": [{"app": "a@1", "effect": "DELETE", "keys": []}],
        "refusals": [{"app": "a@1", "why": "it answers"}],
        "notes": [],
        "unread": "x",
    }


def test_a_table_alone_cannot_be_compared(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text("schema: modelyard/table/v1\nroutes:\n  chat: {stable: m@1.0.0}\n")
    result = CliRunner().invoke(app, [str(path), "--live"])
    assert isinstance(result.exception, ConfigError)
    assert "--live is of a Serve config" in str(result.exception)


def test_nothing_running_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELYARD_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="none answers: start it"):
        live.check_live(tmp_path)


def test_up_is_told_what_it_must_not_drop_and_what_could_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Any) -> Any:
        raise Unreachable("no cluster answers")

    monkeypatch.setattr(live, "deployed_by_rest", lambda _: deployed())
    monkeypatch.setattr(live, "connected", refuse)
    path = tmp_path / "x.serve.yaml"
    path.write_text(TEXT)
    assert require_live(RUNNING, path).unread == "no cluster answers"
    path.write_text(yaml.safe_dump(without_intent().root))
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    with pytest.raises(ConfigError, match=f"{INTENT} must not be dropped"):
        require_live(RUNNING, path)
    assert waits == [live.LOOK_AGAIN_AFTER_S]


def test_what_died_a_moment_ago_is_looked_at_again_before_a_deploy_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.serve.yaml"
    path.write_text(TEXT)
    dead = LiveCheck((), (Refusal(INTENT, "its cell is ready"),))
    looks = iter((dead, LiveCheck((), ())))
    monkeypatch.setattr(live, "compared", lambda *_: next(looks))
    monkeypatch.setattr("time.sleep", lambda _: None)
    assert require_live(RUNNING, path).ok
