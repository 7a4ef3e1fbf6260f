"""`modelyard rollout`, against a platform that a test answers for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from modelyard.cli import rollout as command
from modelyard.cli.admin_client import AdminClient, AdminRefused
from modelyard.cli.check import Output
from modelyard.cli.main import app
from modelyard.cli.rollout_watch import watch
from tests.cli.rollout_views import a_view

PATH = "/admin/rollouts/assistant-1.1"
DONE = {
    "id": "assistant-1.1",
    "phase": "RolledBack",
    "percent": 0.0,
    "revision": 12,
    "published": True,
}
Answer = Callable[[httpx.Request], httpx.Response]


class Site:
    """Answers by method and path; a path that it does not have is a 404."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], Any] = {("GET", PATH): a_view()}
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self.answers.get((request.method, request.url.path))
        if answer is None:
            return httpx.Response(404, json={"error": {"message": "there is no such rollout"}})
        if isinstance(answer, httpx.Response):
            return answer
        return httpx.Response(200, json=answer)

    def client(self, settings: object = None) -> AdminClient:
        return AdminClient("http://test", "my_ops-1_secret", httpx.MockTransport(self))


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Site:
    made = Site()
    client = type("Client", (), {"from_settings": staticmethod(made.client)})
    monkeypatch.setattr(command, "AdminClient", client)
    monkeypatch.setenv("MODELYARD_HOME", str(tmp_path))
    return made


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["rollout", *arguments])


def test_status_of_one_and_of_all(site: Site) -> None:
    one = run("status", "assistant-1.1")
    assert one.exit_code == 0
    assert one.stdout.startswith("rollout assistant-1.1: Holding, 25 %")
    site.answers["GET", "/admin/rollouts"] = {"rollouts": [a_view()]}
    assert run("status").stdout == one.stdout


def test_status_as_json_is_controls_view(site: Site) -> None:
    assert json.loads(run("status", "assistant-1.1", "-o", "json").stdout) == a_view()
    site.answers["GET", "/admin/rollouts"] = {"rollouts": [a_view()]}
    assert json.loads(run("status", "-o", "json").stdout) == [a_view()]


def test_a_rollback_says_what_was_done_and_how_it_stands(site: Site) -> None:
    site.answers["POST", f"{PATH}/rollback"] = DONE
    over = a_view(phase="RolledBack", percent=0.0, step=None, waits_for="", kept_for_s=3600.0)
    site.answers["GET", PATH] = over
    done = run("rollback", "assistant-1.1", "--reason", "wrong answers")
    assert done.exit_code == 0
    assert done.stdout == (
        "assistant-1.1: RolledBack, 0 % on the canary, revision 12: every ingress has it within a "
        "second\n"
        "now rollout assistant-1.1: RolledBack, 0 % of conversations on the canary, for 5 min\n"
        "  next: assistant@1.0.0 answers support-assistant; a replica of assistant@1.1.0 stays for "
        "60 min to look at. Another try needs another rollout id in the file\n"
    )
    assert json.loads(site.asked[0].content) == {"reason": "wrong answers"}


@pytest.mark.parametrize("verb", ["start", "pause", "resume", "rollback"])
def test_a_verb_in_a_hurry_names_its_user(
    site: Site, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "kim")
    site.answers["POST", f"{PATH}/{verb}"] = DONE
    assert run(verb, "assistant-1.1").exit_code == 0
    assert json.loads(site.asked[0].content) == {"reason": f"kim ran `modelyard rollout {verb}`"}


def test_a_user_without_a_name_is_somebody(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 1234")

    monkeypatch.setattr("getpass.getuser", nameless)
    site.answers["POST", f"{PATH}/pause"] = DONE
    run("pause", "assistant-1.1")
    assert json.loads(site.asked[0].content)["reason"].startswith("somebody ran")


@pytest.mark.parametrize("verb", ["approve", "promote"])
def test_who_overrules_the_gates_says_why(site: Site, verb: str) -> None:
    assert run(verb, "assistant-1.1").exit_code == 2
    assert site.asked == []
    site.answers["POST", f"{PATH}/{verb}"] = DONE
    assert run(verb, "assistant-1.1", "--reason", "read 40 answers").exit_code == 0


def test_a_verb_as_json_is_controls_answer(site: Site) -> None:
    site.answers["POST", f"{PATH}/pause"] = DONE
    assert json.loads(run("pause", "assistant-1.1", "-o", "json").stdout) == DONE


@pytest.mark.parametrize(
    ("published", "stored", "words"),
    [
        (True, True, "revision 12: every ingress has it within a second\n"),
        (True, False, "within a second, but the store did not take it yet"),
        (False, True, "stored, but the board did not take it yet"),
        (False, False, "NEITHER the board NOR the store took it yet"),
    ],
)
def test_a_rollback_says_who_has_it_and_who_has_not_yet(
    site: Site, published: bool, stored: bool, words: str
) -> None:
    answer = DONE | {"published": published, "stored": stored}
    site.answers["POST", f"{PATH}/rollback"] = answer
    assert words in run("rollback", "assistant-1.1").stdout


def test_a_done_verb_is_said_though_nobody_tells_how_it_stands(site: Site) -> None:
    site.answers["POST", f"{PATH}/rollback"] = DONE
    del site.answers["GET", PATH]
    done = run("rollback", "assistant-1.1")
    assert (done.exit_code, len(done.stdout.splitlines())) == (0, 1)


def test_a_refusal_is_the_platforms_sentence(site: Site) -> None:
    words = "the rollout assistant-1.1 is Holding: it waits for no approval"
    site.answers["POST", f"{PATH}/approve"] = httpx.Response(
        400, json={"error": {"message": words}}
    )
    done = run("approve", "assistant-1.1", "--reason", "x")
    assert done.exit_code == 1
    assert isinstance(done.exception, AdminRefused)
    assert str(done.exception) == words


def test_history_in_words_and_as_json(site: Site) -> None:
    decisions = [
        {"at_s_ago": 30.0, "author": "ops-1", "what": "paused", "why": "lunch", "percent": 5.0}
        | {"phase": "Paused", "verdicts": []}
    ]
    site.answers["GET", f"{PATH}/history"] = {"decisions": decisions}
    text = run("history", "assistant-1.1").stdout
    assert text == "      30 s ago  paused, now Paused at 5 %, by ops-1: lunch\n"
    assert json.loads(run("history", "assistant-1.1", "-o", "json").stdout) == decisions
    site.answers["GET", f"{PATH}/history"] = {"decisions": []}
    assert run("history", "assistant-1.1").stdout == "nothing was decided yet\n"


def test_an_id_is_one_part_of_the_path(site: Site) -> None:
    run("status", "a/../b")
    assert site.asked[0].url.raw_path == b"/admin/rollouts/a%2F..%2Fb"


def test_only_one_rollout_is_watched(site: Site) -> None:
    assert run("status", "--watch").exit_code == 2
    assert site.asked == []


def watched(site: Site, *views: dict[str, Any] | httpx.Response, output: Output) -> int:
    """Watch a rollout that is as the next of these after each pause."""
    coming = list(views)
    site.answers["GET", PATH] = coming.pop(0)

    def sleep(seconds: float) -> None:
        assert seconds == 2.0
        site.answers["GET", PATH] = coming.pop(0)

    with site.client() as client:
        return watch(client, PATH, 2.0, output, sleep)


AWAY = httpx.Response(503, json={"error": {"message": "control does not answer"}})


@pytest.mark.parametrize(("phase", "code"), [("Promoted", 0), ("RolledBack", 1), ("Aborted", 1)])
def test_a_watch_ends_with_the_rollout_and_outlives_control(
    site: Site, phase: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    end = a_view(phase=phase)
    assert watched(site, a_view(), AWAY, end, output=Output.JSON) == code
    said = capsys.readouterr()
    assert [json.loads(line)["phase"] for line in said.out.splitlines()] == ["Holding", phase]
    assert said.err == "control does not answer (asking again)\n"


def test_a_watch_as_text_is_the_status_each_time(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    watched(site, a_view(), a_view(phase="Promoted"), output=Output.TEXT)
    assert capsys.readouterr().out.count("rollout assistant-1.1: ") == 2


def test_a_rollout_that_there_is_not_is_not_watched(site: Site) -> None:
    missing = httpx.Response(404, json={"error": {"message": "there is no such rollout"}})
    with pytest.raises(AdminRefused, match="no such rollout"):
        watched(site, missing, output=Output.TEXT)
