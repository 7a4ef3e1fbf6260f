import errno
import io
import json
import os
import signal
import threading
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from modelyard.cli.main import app

DEMO = "my_demo-1_key-that-must-not-be-written"


class Server(ThreadingHTTPServer):
    """Answers any POST. refuse: every other gets 503. interrupt_at: Ctrl-C comes with it."""

    daemon_threads = True
    refuse = False
    interrupt_at = 0
    keys: set[str]
    count = 0


class Closed(io.StringIO):
    """Whoever read the output is gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.keys.add(self.headers.get("Authorization", ""))
        self.server.count += 1
        if self.server.count == self.server.interrupt_at:
            os.kill(os.getpid(), signal.SIGINT)
        refused = self.server.refuse and self.server.count % 2 == 0
        record: Any = {"usage": {"prompt_tokens": 5}}
        if refused:
            record = {"error": {"code": "overloaded", "reason": "queue_full"}}
        body = json.dumps(record).encode()
        self.send_response(503 if refused else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing into the tests' output."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as running:
        running.keys = set()
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELYARD_HOME", str(tmp_path))
    monkeypatch.delenv("MODELYARD_URL", raising=False)
    monkeypatch.delenv("MODELYARD_API_KEY", raising=False)


def run(server: Server, *words: str) -> Any:
    url = f"http://127.0.0.1:{server.server_address[1]}"
    return CliRunner().invoke(app, ["bench", "--url", url, *words])


SIMPLE = ("--route", "classify", "--model", "m", "--duration", "0.5", "--warmup", "0")


def test_a_run_prints_a_table_and_writes_json_and_a_page(server: Server, tmp_path: Path) -> None:
    server.refuse = True
    json_file, html_file = tmp_path / "a.json", tmp_path / "a.html"
    result = run(
        server, *SIMPLE, "--rate", "40,60", "--all-rates", "--slo", "e2e=30s",
        "--api-key", DEMO, "--json", str(json_file), "--html", str(html_file),
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "good/s" in result.output
    assert "rejected 503 queue_full" in result.output
    record = json.loads(json_file.read_text())
    first = record["levels"][0]["total"]
    assert first["rejections"] == [
        {"code": "503", "reason": "queue_full", "count": first["refused"], "message": ""}
    ]
    assert first["completed"] + first["refused"] == first["offered"] > 5
    assert server.keys == {f"Bearer {DEMO}"}
    page = html_file.read_text()
    assert DEMO not in json_file.read_text() + page + result.output
    assert page.count("<svg") >= 4
    assert "<script" not in page
    for svg in page.split("<svg")[1:]:
        ET.fromstring("<svg" + svg.partition("</svg>")[0] + "</svg>")


def test_two_results_become_one(server: Server, tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("a.json", "b.json", "c.json")]
    for file in files[:2]:
        assert run(server, *SIMPLE, "--rate", "40", "--json", file).exit_code == 0
    merged = CliRunner().invoke(app, ["bench", "merge", *files[:2], "-o", "json"])
    assert merged.exit_code == 0, merged.output
    counts = [
        json.loads(text)["levels"][0]["total"]["completed"]
        for text in (Path(files[0]).read_text(), Path(files[1]).read_text(), merged.output)
    ]
    assert counts[2] == counts[0] + counts[1]


def test_a_workload_with_tenants_needs_a_key_for_each(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(
        "schema: modelyard/workload/v1\nduration_s: 0.5\narrivals: {constant: {rate_per_s: 40}}\n"
        "streams:\n- {name: a, route: classify, model: m, tenant: t, priority: batch}\n"
        "- {name: b, route: embeddings, model: m, tenant: u, priority: interactive}\n"
        "- {name: c, route: rerank, model: m, tenant: u, priority: interactive}\n"
    )
    words = ("--workload", str(path), "--warmup", "0", "--api-key", "t=one")
    missing = run(server, *words)
    assert missing.exit_code == 2
    assert "give --api-key u=KEY" in missing.output
    result = run(server, *words, "--api-key", "u=two")
    assert result.exit_code == 0, result.output
    assert server.keys == {"Bearer one", "Bearer two"}
    for title in ("by stream", "by tenant", "by priority"):
        assert title in result.output


def test_the_platforms_own_key_does_not_go_to_a_stranger(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODELYARD_API_KEY", DEMO)
    assert run(server, *SIMPLE, "--rate", "20").exit_code == 0
    assert server.keys == {""}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--route is missing"),
        ((*SIMPLE, "--rate", "0"), "no rising list of rates"),
        ((*SIMPLE, "--rate", "1", "--slo", "fast"), "is no bound"),
        ((*SIMPLE, "--rate", "1", "--slo", "e2e=" + "9" * 400 + "s"), "is no bound"),
        ((*SIMPLE, "--rate", "1000000", "--steps", "0@99,1@1"), "out of bounds"),
        ((*SIMPLE, "--rate", "1", "--duration", "inf"), "must be a finite number"),
        ((*SIMPLE, "--rate", "1", "--connections", "0"), "--connections"),
        (("--workload", "/nowhere.yaml"), "cannot be read"),
        ((*SIMPLE, "--rate", "1", "--json", "/nowhere/a.json"), "its folder does not exist"),
        ((*SIMPLE, "--rate", "1", "--json", "/proc"), "/proc cannot be written"),
        ((*SIMPLE, "--rate", "1", "--html", "/proc/version/a"), "its folder does not exist"),
        ((*SIMPLE, "--rate", "1", "--json", "/proc/self/x"), "/proc/self/x cannot be written"),
        ((*SIMPLE, "--rate", "1", "--json", "/x", "--html", "/x"), "a file of its own"),
        ((*SIMPLE, "--rate", "1", "--goodput-percent", "nan"), "--goodput-percent"),
    ],
)
def test_wrong_usage_is_a_sentence_and_exit_code_2(
    server: Server, words: tuple[str, ...], said: str
) -> None:
    result = run(server, *words)
    assert result.exit_code == 2
    assert said in result.output
    assert "Traceback" not in result.output
    assert server.count == 0  # before the run and not after it


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000", "http://", "http:///v1", "http://h:99999", "http://h:x", "http://[::1",
        "http://h:0", "http://a b", "http://h\n", "http://h/?q=1", "ftp://h",
    ],
)  # fmt: skip
def test_an_address_that_is_none_is_wrong_usage(url: str) -> None:
    words = ["bench", "--url", url, *SIMPLE, "--rate", "1"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert "write http://HOST:PORT" in result.output


def test_a_run_without_any_answer_exits_with_1_and_has_its_page(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    words = ["bench", "--url", "http://127.0.0.1:9", *SIMPLE, "--rate", "20", "--html", str(page)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1, result.output
    assert "0.0 % of" in page.read_text()
    assert "error connect ECONNREFUSED" in result.output


def test_an_interrupt_shows_what_was_measured_so_far(server: Server) -> None:
    server.interrupt_at = 20
    words = ("--route", "classify", "--model", "m", "--rate", "50", "--duration", "3000")
    result = run(server, *words, "--warmup", "0")
    assert result.exit_code == 0, result.output
    assert "it was interrupted" in result.output


def test_a_password_in_the_address_is_refused_since_the_result_would_hold_it() -> None:
    words = ["bench", "--url", "http://u:secret@h", *SIMPLE, "--rate", "1"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert "secret" not in result.output


@pytest.mark.parametrize("form", ["text", "json"])
def test_files_are_written_although_nobody_reads_the_output(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    files = [tmp_path / "a.json", tmp_path / "a.html"]
    url = f"http://127.0.0.1:{server.server_address[1]}"
    words = ["--rate", "40", "--json", str(files[0]), "--html", str(files[1]), "-o", form]
    monkeypatch.setattr("sys.stdout", Closed())
    with pytest.raises((SystemExit, OSError)):
        app(["bench", "--url", url, *SIMPLE, *words])
    assert json.loads(files[0].read_text())["levels"]
    assert "<svg" in files[1].read_text()


def test_a_disk_that_is_full_leaves_the_output(server: Server, tmp_path: Path) -> None:
    result = run(server, *SIMPLE, "--rate", "40", "--json", "/dev/full")
    assert result.exit_code == 1
    assert "not written (No space left on device)" in result.output
    assert "good/s" in result.output


def test_a_place_that_was_only_tried_is_left_as_it_was(server: Server, tmp_path: Path) -> None:
    new, old = tmp_path / "a.json", tmp_path / "a.html"
    old.write_text("before")
    words = ("--rate", "1", "--json", str(new), "--html", str(old), "--url", "http://")
    assert run(server, *SIMPLE, *words).exit_code == 2
    assert not new.exists()
    assert old.read_text() == "before"


def test_an_address_with_brackets_is_no_markup(server: Server) -> None:
    url = f"http://127.0.0.1:{server.server_address[1]}/[/b]"
    result = run(server, *SIMPLE, "--rate", "40", "--url", url)
    assert result.exit_code == 0, result.output
    assert url in result.output


@pytest.mark.parametrize("rows", ["0,1,1\n", "0,1,1\n0,1,1\n"])
def test_a_recording_of_one_moment_is_wrong_usage_also_with_a_rate(
    server: Server, tmp_path: Path, rows: str
) -> None:
    (tmp_path / "t.csv").write_text("offset_s,input_tokens,output_tokens\n" + rows)
    path = tmp_path / "w.yaml"
    path.write_text(
        "schema: modelyard/workload/v1\nduration_s: 1\narrivals: {replay: {file: t.csv}}\n"
        "streams:\n- {name: a, route: classify, model: m}\n"
    )
    for words in ((), ("--rate", "5")):
        result = run(server, "--workload", str(path), *words)
        assert result.exit_code == 2
        assert "no rate to replay" in result.output
