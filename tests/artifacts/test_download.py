"""One file against a scripted source: no network, no waiting."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.artifacts.backoff import Patience
from modelyard.artifacts.download import Conduct, Stopped, download, receive
from modelyard.artifacts.manifest import File
from modelyard.artifacts.part import Received
from modelyard.artifacts.source import Body, Changed, Interrupted
from modelyard.contract.errors import ArtifactError

DATA = bytes(range(200))
FILE = File(path="a/b.bin", size_bytes=len(DATA), sha256=hashlib.sha256(DATA).hexdigest())


@dataclass
class Scripted:
    """Each opening answers with the next step; the last one is repeated.

    A step: bytes that arrive before the connection breaks, None for all of them, or an error.
    """

    steps: list[int | Exception | None]
    data: bytes = DATA
    tag: str = "one"
    uri: str = "test://store"
    opened: list[tuple[int, str | None]] = field(default_factory=list)

    @contextmanager
    def open(self, path: str, start: int, tag: str | None) -> Iterator[Body]:
        self.opened.append((start, tag))
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        if isinstance(step, Exception):
            raise step
        if tag is not None and tag != self.tag:
            raise Changed("replaced")
        yield Body(self.tag, len(self.data), self._chunks(start, step))

    def _chunks(self, start: int, step: int | None) -> Iterator[bytes]:
        end = len(self.data) if step is None else min(start + step, len(self.data))
        for at in range(start, end, 16):
            yield self.data[at : min(at + 16, end)]
        if step is not None:
            raise Interrupted("the line broke")


@dataclass
class Recorded:
    """Waits that were asked for, and the count of bytes; `stop_after` of the waits stops."""

    waits: list[float] = field(default_factory=list)
    arrived: int = 0
    stop_after: int = 10**9

    def conduct(self, **patience: float) -> Conduct:
        def wait(seconds: float) -> bool:
            self.waits.append(seconds)
            return len(self.waits) > self.stop_after

        def count(change: int) -> None:
            self.arrived += change

        record = {"attempts": 3, "base_s": 1.0, "cap_s": 8.0} | patience
        return Conduct(Patience(**record), wait, lambda: 1.0, count)  # type: ignore[arg-type]


def fetch(folder: Path, source: Scripted, record: Recorded, **patience: float) -> bytes:
    target = folder / "files" / FILE.path
    download(source, FILE, folder / "0", target, record.conduct(**patience))
    assert not (folder / "0").exists()
    assert not (folder / "0.tag").exists()
    return target.read_bytes()


def test_a_file_that_arrives_at_once_is_opened_once(tmp_path: Path) -> None:
    source, record = Scripted([None]), Recorded()
    assert fetch(tmp_path, source, record) == DATA
    assert source.opened == [(0, None)]
    assert record.arrived == len(DATA)


def test_breaks_without_a_byte_wait_longer_each_time_and_a_byte_starts_again(
    tmp_path: Path,
) -> None:
    source, record = Scripted([0, 0, 64, 0, 0, None]), Recorded()
    assert fetch(tmp_path, source, record) == DATA
    assert [wait for wait in record.waits if wait] == [1.0, 2.0, 1.0, 1.0, 2.0]
    assert source.opened[-1] == (64, "one")


def test_too_many_breaks_in_a_row_fail_and_keep_what_arrived(tmp_path: Path) -> None:
    with pytest.raises(
        ArtifactError, match=r"line broke; nothing arrived in 3 attempts.* 64 bytes"
    ):
        fetch(tmp_path, Scripted([64, 0]), Recorded())
    source = Scripted([None])
    assert fetch(tmp_path, source, Recorded()) == DATA
    assert source.opened == [(64, "one")]


def test_a_body_that_ends_early_without_a_word_is_a_break(tmp_path: Path) -> None:
    short = Scripted([None])
    short._chunks = lambda start, step: iter([DATA[start : start + 50]])  # type: ignore[method-assign]
    record = Recorded()
    assert fetch(tmp_path, short, record) == DATA
    assert [start for start, _ in short.opened] == [0, 50, 100, 150]


def test_an_error_that_is_for_good_is_not_tried_again(tmp_path: Path) -> None:
    source = Scripted([ArtifactError("no permission")])
    with pytest.raises(ArtifactError, match="no permission"):
        fetch(tmp_path, source, Recorded())
    assert len(source.opened) == 1


def test_a_stop_ends_a_back_off(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        fetch(tmp_path, Scripted([0]), Recorded(stop_after=0))


def test_a_stop_ends_a_running_transfer_after_the_chunk(tmp_path: Path) -> None:
    record = Recorded(stop_after=2)
    with pytest.raises(Stopped):
        fetch(tmp_path, Scripted([None]), record)
    assert record.arrived == 48


def test_a_part_that_rotted_on_this_disk_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "0").write_bytes(bytes(64))
    (tmp_path / "0.tag").write_text("one")
    source, record = Scripted([None]), Recorded()
    assert fetch(tmp_path, source, record) == DATA
    assert source.opened == [(64, "one"), (0, None)]
    assert record.arrived == len(DATA)


def test_a_part_longer_than_the_file_is_thrown_away(tmp_path: Path) -> None:
    (tmp_path / "0").write_bytes(DATA + b"more")
    source = Scripted([None])
    assert fetch(tmp_path, source, Recorded()) == DATA
    assert source.opened == [(0, None)]


def test_a_whole_part_is_not_asked_for_again(tmp_path: Path) -> None:
    (tmp_path / "0").write_bytes(DATA)
    source = Scripted([None])
    assert fetch(tmp_path, source, Recorded()) == DATA
    assert source.opened == []


def test_an_object_replaced_over_and_over_ends(tmp_path: Path) -> None:
    source = Scripted([Changed("replaced meanwhile")])
    with pytest.raises(ArtifactError, match="replaced meanwhile; fetched 3 times"):
        fetch(tmp_path, source, Recorded())


def test_an_empty_file_is_made_without_asking(tmp_path: Path) -> None:
    empty = File(path="empty", size_bytes=0, sha256=hashlib.sha256().hexdigest())
    source = Scripted([None], data=b"")
    download(source, empty, tmp_path / "0", tmp_path / "empty", Recorded().conduct())
    assert (tmp_path / "empty").read_bytes() == b""
    assert source.opened == []


@settings(max_examples=60)
@given(st.lists(st.integers(1, 200), max_size=12))
def test_any_breaks_that_bring_bytes_end_in_the_file_with_each_byte_counted_once(
    breaks: list[int],
) -> None:
    source, record, part = Scripted([*breaks, None]), Recorded(), Received()
    receive(source, FILE, part, record.conduct(attempts=1))
    assert part.sha256 == FILE.sha256
    starts = [start for start, _ in source.opened]
    assert starts == sorted(set(starts))
