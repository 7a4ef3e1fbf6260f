"""`modelyard rollout replay`: two versions and control, which a test answers for."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from modelyard.cli import rollout as command
from modelyard.cli import rollout_replay
from modelyard.cli.admin_client import AdminClient
from modelyard.cli.ask_version import ATTEMPTS, MOST_WAIT_S, AskVersion, NoAnswer
from modelyard.cli.main import app
from modelyard.cli.replay_text import replay_text
from modelyard.cli.rollout_replay import POST_AT_ONCE, ask_all
from modelyard.contract.errors import ConfigError
from modelyard.rollout.golden_set import parse_golden_set
from modelyard.rollout.replayed import Replayed
from tests.cli.rollout_views import a_gate, a_view

PATH = "/admin/rollouts/assistant-1.1"
STABLE, CANARY = "assistant@1.0.0", "assistant@1.1.0"
ANSWERS = {
    (STABLE, "capital of France?"): "Paris.",
    (CANARY, "capital of France?"): "Paris.",
    (STABLE, "returns?"): "Within 30 days.",
    (CANARY, "returns?"): "Within 60 days, I think, or so I have heard from a friend of mine.",
}


class Site:
    """Both versions, by what they are asked, and control. `trouble` comes before an answer."""

    def __init__(self) -> None:
        self.view = a_view()
        self.judgements: list[dict[str, Any]] = []
        self.posts = 0
        self.trouble: dict[str, list[httpx.Response]] = {}
        self.at_once, self.most_at_once = 0, 0
        self._lock = threading.Lock()

    def control(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, json=self.view)
        assert request.url.path == f"{PATH}/judgements"
        body = json.loads(request.content)
        assert body["source"] == "replay"
        self.judgements += body["judgements"]
        self.posts += 1
        return httpx.Response(200, json={"taken": len(body["judgements"])})

    def versions(self, request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"] == "Bearer my_eval-1_secret"
        with self._lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return self._answer(request)
        finally:
            with self._lock:
                self.at_once -= 1

    def _answer(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        assert body["temperature"] == 0
        version = body["model"]
        if self.trouble.get(version):
            return self.trouble[version].pop(0)
        text = ANSWERS[version, body["messages"][-1]["content"]]
        return httpx.Response(200, json={"choices": [{"message": {"content": text}}]})


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Site:
    made = Site()
    client = type(
        "Client",
        (),
        {
            "from_settings": staticmethod(
                lambda settings: AdminClient(
                    "http://test", "my_ops-1_secret", httpx.MockTransport(made.control)
                )
            )
        },
    )
    monkeypatch.setattr(command, "AdminClient", client)
    monkeypatch.setattr(
        rollout_replay,
        "AskVersion",
        lambda url, key, sleep: AskVersion(
            url, key, lambda seconds: None, httpx.MockTransport(made.versions)
        ),
    )
    monkeypatch.setenv("MODELYARD_HOME", str(tmp_path))
    monkeypatch.setenv("MODELYARD_API_KEY", "my_eval-1_secret")
    return made


def line(question: str, **expect: str) -> str:
    return json.dumps({"messages": [{"role": "user", "content": question}], "expect": expect})


FRANCE = line("capital of France?", contains="Paris")
RETURNS = line("returns?", matches=r"\b30 days")


def run(folder: Path, lines: list[str], *options: str) -> Result:
    path = folder / "golden.jsonl"
    path.write_text("\n".join(lines))
    return CliRunner(env={"COLUMNS": "80"}).invoke(
        app, ["rollout", "replay", "assistant-1.1", "--golden", str(path), *options]
    )


SHOWN = """\
item 2: matches '\\\\b30 days'
  asked: returns?
  assistant@1.0.0 right                 | assistant@1.1.0 WRONG
  Within 30 days.                       | Within 60 days, I think, or so I have
                                        | heard from a friend of mine.

of 2 items assistant@1.0.0 has 2 right, assistant@1.1.0 1: 1 answers differ, 1 only the stable \
version has right, 0 only the canary
4 judgements taken (a set that comes again counts once): `modelyard rollout status assistant-1.1`
"""


def test_where_the_arms_differ_both_answers_stand_side_by_side(site: Site, tmp_path: Path) -> None:
    site.view["gates"] = [a_gate("quality", "waiting", "")]
    done = run(tmp_path, [FRANCE, RETURNS])
    assert done.stdout == SHOWN
    assert done.exit_code == 0
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b]0;owned\x07", "\\x1b[2J\\x1b]0;owned\\x07"),
        ("all right\rwrong", "all right\\rwrong"),
        ("\x9b31m \x7f\x08", "\\x9b31m \\x7f\\x08"),
        ("a\u202eb\u200bc\u2028d", "a\\u202eb\\u200bc\\u2028d"),
        ("caf\u00e9 \u4e16", "caf\u00e9 \u4e16"),
    ],
)
def test_what_a_terminal_would_obey_is_shown(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, shown: str
) -> None:
    monkeypatch.setitem(ANSWERS, (CANARY, "returns?"), text)
    done = run(tmp_path, [RETURNS], "--no-post")
    assert shown in done.output
    assert not {one for one in done.output if ord(one) < 32 or 127 <= ord(one) < 160} - {"\n"}
    assert not {"\u202e", "\u200b", "\u2028"} & set(done.output)


def test_a_fault_and_a_question_are_shown_so_too() -> None:
    item = parse_golden_set(line("re\x1b[2Jturns?", contains="x\x1by").encode(), "golden")[0]
    done = [
        Replayed(1, item, "one", "two"),
        Replayed(2, item, None, None, "gone\x1b[2J"),
    ]
    text = replay_text(a_view(), done)
    assert "\x1b" not in text
    assert text.count("\\x1b") >= 3


def test_both_arms_are_judged_in_pairs(site: Site, tmp_path: Path) -> None:
    run(tmp_path, [RETURNS])
    stable, canary = site.judgements
    assert (stable["arm"], stable["good"]) == ("stable", True)
    assert (canary["arm"], canary["good"]) == ("canary", False)
    assert stable["pair"] == canary["pair"]
    assert stable["unit"] != canary["unit"]
    run(tmp_path, [RETURNS])
    assert site.judgements[2:] == [stable, canary]  # the same units: control counts them once


def test_as_json_every_item_is_there(site: Site, tmp_path: Path) -> None:
    record = json.loads(run(tmp_path, [FRANCE, RETURNS], "-o", "json").stdout)
    assert record["taken"] == 4
    assert [one["canary_good"] for one in record["items"]] == [True, False]
    assert record["items"][1]["stable"] == "Within 30 days."


def test_nothing_is_posted_when_told_so(site: Site, tmp_path: Path) -> None:
    assert "posted" not in run(tmp_path, [FRANCE], "--no-post").stdout
    assert site.posts == 0


def test_a_plan_without_the_gate_is_told(site: Site, tmp_path: Path) -> None:
    assert "add gates.quality" in run(tmp_path, [FRANCE]).stderr


def test_an_item_that_one_arm_does_not_answer_is_no_judgement(site: Site, tmp_path: Path) -> None:
    site.trouble[CANARY] = [httpx.Response(500, text="internal")]
    done = run(tmp_path, [RETURNS, FRANCE], "--concurrency", "1")
    assert done.exit_code == 1
    assert f"item 1: NOT ANSWERED: {CANARY} said 500: internal" in done.stdout
    assert "1 NOT ANSWERED" in done.stdout
    assert len(site.judgements) == 2


def test_a_busy_platform_is_asked_again(site: Site, tmp_path: Path) -> None:
    busy = httpx.Response(429, headers={"retry-after": "3"}, text="busy")
    site.trouble[CANARY] = [busy] * (ATTEMPTS - 1)
    assert run(tmp_path, [FRANCE]).exit_code == 0
    site.trouble[CANARY] = [busy] * ATTEMPTS
    assert "said 429: busy" in run(tmp_path, [FRANCE]).stdout


def test_an_answer_of_another_shape_is_a_fault_of_the_item(site: Site, tmp_path: Path) -> None:
    site.trouble[STABLE] = [httpx.Response(200, json={"choices": []})]
    assert f"{STABLE} gave no text" in run(tmp_path, [FRANCE]).stdout


def test_a_finished_rollout_takes_no_judgements(site: Site, tmp_path: Path) -> None:
    site.view["phase"] = "RolledBack"
    done = run(tmp_path, [FRANCE])
    assert isinstance(done.exception, ConfigError)
    assert "use --no-post" in str(done.exception)
    assert run(tmp_path, [FRANCE], "--no-post").exit_code == 0


def test_a_key_of_its_own_may_come_from_a_file(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODELYARD_API_KEY", "my_ops-1_secret")
    (tmp_path / "key").write_text("my_eval-1_secret\n")
    assert run(tmp_path, [FRANCE], "--api-key", f"@{tmp_path / 'key'}").exit_code == 0


def test_no_more_are_asked_at_once_than_allowed(site: Site, tmp_path: Path) -> None:
    lines = [line("returns?", contains=str(number)) for number in range(40)]
    run(tmp_path, lines, "--concurrency", "3")
    assert 1 <= site.most_at_once <= 3
    assert len(site.judgements) == 80


def test_many_judgements_are_posted_in_whole_pairs(site: Site, tmp_path: Path) -> None:
    lines = [line("returns?", contains=str(number)) for number in range(POST_AT_ONCE // 2 + 1)]
    run(tmp_path, lines)
    assert site.posts == 2
    assert POST_AT_ONCE % 2 == 0


def test_a_file_that_is_wrong_asks_nobody(site: Site, tmp_path: Path) -> None:
    done = run(tmp_path, [FRANCE, "{}"])
    assert "golden.jsonl:2: " in str(done.exception)
    assert site.most_at_once == 0


def asked(answer: Callable[[httpx.Request], httpx.Response]) -> tuple[AskVersion, list[float]]:
    waits: list[float] = []
    return AskVersion("http://test", "k", waits.append, httpx.MockTransport(answer)), waits


@pytest.mark.parametrize(
    ("header", "wait_s"), [("2", 2.0), ("soon", 1.0), ("1e9", MOST_WAIT_S), ("-1", 0.0)]
)
def test_a_wait_is_as_told_and_bounded(header: str, wait_s: float) -> None:
    asker, waits = asked(lambda request: httpx.Response(503, headers={"retry-after": header}))
    with asker, pytest.raises(NoAnswer, match="503"):
        asker.post("/v1/completions", {})
    assert waits == [wait_s] * (ATTEMPTS - 1)


def test_a_broken_connection_and_no_json_are_no_answers() -> None:
    def broken(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("gone")

    [item] = parse_golden_set(FRANCE.encode(), "f")
    with asked(broken)[0] as asker:
        [done] = ask_all(asker, a_view(), [item], 1)
    assert done.fault == f"{CANARY} said ReadError: gone"
    with asked(lambda request: httpx.Response(200, text="<html>"))[0] as asker:
        assert "no JSON: <html>" in ask_all(asker, a_view(), [item], 1)[0].fault
