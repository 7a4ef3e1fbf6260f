"""What became of a request: found in the logs of a node, and told in words."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from modelyard.control.why import distinct, find_in_logs, in_words
from modelyard.telemetry.request_log import RequestLog, RequestRecord


def record(request_id: str, ts: str = "2026-11-30T10:00:00", **fields: Any) -> RequestRecord:
    return RequestRecord(ts=ts, request_id=request_id, route="/v1/generate", **fields)


def written(folder: Path, process: str, *records: RequestRecord) -> Path:
    log = RequestLog(folder, process)
    for one in records:
        log.write(one)
    log.close()
    return log.path


def test_a_request_is_found_in_the_log_of_any_process(tmp_path: Path) -> None:
    written(tmp_path, "a", record("r-1", tenant="alpha"), record("r-10"), record("r-2"))
    written(tmp_path, "b", record("r-1", ts="2026-11-30T09:00:00"))
    found = find_in_logs(tmp_path, "r-1")
    assert [line["ts"] for line in found] == ["2026-11-30T09:00:00", "2026-11-30T10:00:00"]
    assert found[1]["tenant"] == "alpha"
    assert find_in_logs(tmp_path, "r-3") == []
    assert find_in_logs(tmp_path / "none", "r-1") == []


def test_rotated_files_are_searched_and_the_newest_first(tmp_path: Path) -> None:
    old = written(tmp_path, "a", record("r-1", ts="old"))
    old.rename(tmp_path / "requests-a.jsonl.1")
    new = written(tmp_path, "a", record("r-1", ts="new"))
    os.utime(tmp_path / "requests-a.jsonl.1", (1, 1))
    assert [line["ts"] for line in find_in_logs(tmp_path, "r-1")] == ["new", "old"]
    assert [line["ts"] for line in find_in_logs(tmp_path, "r-1", new.stat().st_size)] == ["new"]


def test_a_torn_or_empty_file_is_no_error(tmp_path: Path) -> None:
    path = written(tmp_path, "a", record("r-1"))
    with path.open("a") as file:
        file.write('{"ts": "x", "request_id": "r-1", "rou')
    (tmp_path / "requests-b.jsonl").write_text("")
    assert len(find_in_logs(tmp_path, "r-1")) == 1


def test_a_text_that_only_mentions_the_id_is_not_it(tmp_path: Path) -> None:
    line = {"request_id": "other", "reason": '"request_id": "r-1"'}
    (tmp_path / "requests-a.jsonl").write_text(json.dumps(line) + "\n")
    nested = {"request_id": "other", "x": {"request_id": "r-1"}}
    (tmp_path / "requests-b.jsonl").write_text(json.dumps(nested) + "\n")
    assert find_in_logs(tmp_path, "r-1") == []


def test_many_lines_of_one_id_are_bounded(tmp_path: Path) -> None:
    written(tmp_path, "a", *(record("r-1", ts=f"{n:03}") for n in range(50)))
    assert len(find_in_logs(tmp_path, "r-1")) == 20


def test_what_two_ingresses_found_is_one_line() -> None:
    assert distinct([{"ts": "2"}, {"ts": "1"}, {"ts": "2"}]) == [{"ts": "1"}, {"ts": "2"}]


def test_a_served_request_in_words() -> None:
    line = json.loads(
        record(
            "r-1",
            tenant="alpha",
            key_id="alpha-1",
            model="chat",
            version="gen@1.1.0",
            arm="canary",
            attempt=2,
            status=200,
            ttft_ms=120.4,
            duration_ms=900.0,
            input_tokens=30,
            cached_tokens=16,
            output_tokens=7,
            finish_reason="stop",
        ).line()
    )
    assert in_words(line) == [
        "2026-11-30T10:00:00: /v1/generate for alpha with the key alpha-1",
        "model chat -> gen@1.1.0 (canary), sent to a replica 2 times",
        "answered 200 ok, 120 ms to the first token, 900 ms in all, finished by stop",
        "30 tokens in (16 cached), 7 out",
    ]


def test_the_wait_and_what_was_made_smaller_are_said() -> None:
    line = {"ts": "t", "status": 200, "queued_ms": 1140.2, "degraded": "max_output_tokens=16"}
    assert in_words(line)[1:3] == ["waited 1.1 s for a slot", "capped: max_output_tokens=16"]
    fallen = line | {"queued_ms": 12.0, "degraded": "fallback=gen@1.0.0"}
    assert in_words(fallen)[1:3] == [
        "waited 12 ms for a slot",
        "answered by the fallback gen@1.0.0",
    ]
    assert "sent to the fallback gen@1.0.0" in in_words(fallen | {"status": 503})
    assert not any("waited" in text or "capped" in text for text in in_words({"ts": "t"}))


def test_a_refused_request_says_why() -> None:
    line = {
        "ts": "t",
        "route": "/v1/generate",
        "status": 429,
        "code": "rate_limited",
        "reason": "quota",
    }
    assert in_words(line) == [
        "t: /v1/generate for no known tenant with the key -",
        "answered 429 rate_limited because of quota, 0 ms in all",
    ]
    assert "was not resolved" in in_words(line | {"model": "chat"})[1]
    metered = in_words(line | {"reserved_tokens": 512, "settled_tokens": 40})
    assert metered[2] == "512 reserved tokens, 40 settled tokens"
