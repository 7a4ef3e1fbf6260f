"""The placement's lines of `modelyard status`."""

from __future__ import annotations

import json
from dataclasses import replace

from modelyard.cli.placement_text import SHOWN, placement_lines, placement_record
from placement.pending import Pending, Reason
from placement.verify import Mismatch, Wrong
from placement.watched import Placement

FINE = Placement((), (), 7, 6)
WRONG = Mismatch("gen@1.0.0", "r1", Wrong.PLACE, "is at d1, planned for d0")
WAITS = Pending("emb@1.0.0", "r2", "d0", Reason.FULL, "needs 9 gpu_mem", 12.0, False)


def test_nothing_is_said_where_nothing_was_placed() -> None:
    assert placement_lines(None) == []
    assert placement_record(None) == {}


def test_all_as_planned_is_one_line() -> None:
    assert placement_lines(FINE) == ["placement: as planned, 6 of 7 places in use"]


def test_each_mismatch_and_each_wait_is_a_line() -> None:
    assert placement_lines(replace(FINE, mismatches=(WRONG,), pending=(WAITS,))) == [
        "placement: NOT as planned, 6 of 7 places in use",
        "  emb@1.0.0 r2 has waited 12 s for a place: needs 9 gpu_mem",
        "  gen@1.0.0 r1: is at d1, planned for d0",
    ]


def test_a_fleet_that_is_all_wrong_does_not_fill_the_terminal() -> None:
    many = replace(FINE, mismatches=tuple(replace(WRONG, replica=f"r{n}") for n in range(50)))
    lines = placement_lines(many)
    assert len(lines) == SHOWN + 2
    assert lines[-1] == "  and 30 more: `modelyard status -o json`"


def test_json_has_all_of_it() -> None:
    record = json.loads(json.dumps(placement_record(replace(FINE, mismatches=(WRONG,)))))
    assert record["placement"]["mismatches"][0]["kind"] == "wrong_place"
    assert record["placement"]["planned"] == 7
