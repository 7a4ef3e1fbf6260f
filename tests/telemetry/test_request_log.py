import json
import threading
from pathlib import Path
from typing import Any

import pytest

from modelyard.telemetry import request_log
from modelyard.telemetry.request_log import RequestLog, RequestRecord


def record(**fields: Any) -> RequestRecord:
    return RequestRecord(
        **({"ts": "2024-01-01T00:00:00.000+00:00", "request_id": "r-1", "route": "/x"} | fields)
    )


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_line_leaves_out_what_is_not_known() -> None:
    assert json.loads(record().line()) == {
        "ts": "2024-01-01T00:00:00.000+00:00",
        "request_id": "r-1",
        "route": "/x",
        "stream": False,
        "status": 0,
        "code": "ok",
        "input_tokens": 0,
        "output_tokens": 0,
        "cached_tokens": 0,
        "duration_ms": 0.0,
        "attempt": 0,
    }


def test_a_line_is_one_line_whatever_it_holds() -> None:
    line = record(model="a\nb\u2028\u00e9", ignored_fields=("x\r",)).line()
    assert "\n" not in line
    assert "\r" not in line
    assert json.loads(line)["model"] == "a\nb\u2028\u00e9"


def test_closing_writes_everything_that_is_queued(tmp_path: Path) -> None:
    log = RequestLog(tmp_path / "made" / "here", "p1")
    for number in range(500):
        log.write(record(request_id=f"r-{number}", model="\u00e9%s"))
    log.close()
    assert log.path == tmp_path / "made" / "here" / "requests-p1.jsonl"
    lines = lines_of(log.path)
    assert [line["request_id"] for line in lines] == [f"r-{number}" for number in range(500)]
    assert lines[0]["model"] == "\u00e9%s"


def test_a_record_is_written_as_it_was_when_it_was_given(tmp_path: Path) -> None:
    log = RequestLog(tmp_path, "p1")
    one = record()
    log.write(one)
    one.status = 500
    log.close()
    assert lines_of(log.path)[0]["status"] == 0


def test_two_processes_write_two_files(tmp_path: Path) -> None:
    logs = [RequestLog(tmp_path, name) for name in ("p1", "p2")]
    for log in logs:
        log.write(record())
        log.close()
    assert {path.name for path in tmp_path.iterdir()} == {
        "requests-p1.jsonl",
        "requests-p2.jsonl",
    }


def test_a_restart_appends(tmp_path: Path) -> None:
    for _ in range(2):
        log = RequestLog(tmp_path, "p1")
        log.write(record())
        log.close()
    assert len(lines_of(log.path)) == 2


def test_a_full_file_is_rotated_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_log, "MAX_BYTES", 2000)
    log = RequestLog(tmp_path, "p1")
    for number in range(20):
        log.write(record(request_id=f"r-{number}"))
    log.close()
    files = sorted(tmp_path.iterdir())
    assert len(files) > 1
    written = {line["request_id"] for file in files for line in lines_of(file)}
    assert written == {f"r-{number}" for number in range(20)}


def test_closing_leaves_no_thread(tmp_path: Path) -> None:
    before = threading.active_count()
    log = RequestLog(tmp_path, "p1")
    log.close()
    assert threading.active_count() == before
