"""The Grafana dashboard asks for nothing that is not exported, and for all that is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from modelyard.telemetry.families import FAMILIES
from modelyard.telemetry.family import Family

DASHBOARD: Final = Path(__file__).parents[2] / "docs" / "grafana" / "modelyard.json"
SERIES: Final = {series: family for family in FAMILIES for series in family.series}
SCRAPED: Final = {"app", "replica"}  # what /metrics adds to every sample of a process


def dashboard() -> dict[str, Any]:
    record: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return record


def expressions() -> list[str]:
    record = dashboard()
    asked = [target["expr"] for panel in record["panels"] for target in panel.get("targets", ())]
    listed = [one["definition"] for one in record["templating"]["list"] if one["type"] == "query"]
    return asked + listed


def families_of(expression: str) -> list[Family]:
    """Raises KeyError for a series that nobody exports."""
    return [SERIES[name] for name in re.findall(r"modelyard_\w+", expression)]


def labels_of(expression: str) -> set[str]:
    """Every label that an expression matches on, groups by or lists."""
    matched = re.findall(r'(\w+)(?:=~|!~|!=|=)"', expression)
    grouped = [name for one in re.findall(r"by \(([^)]*)\)", expression) for name in one.split(",")]
    listed = re.findall(r"label_values\(.*, (\w+)\)$", expression)
    return {name.strip() for name in (*matched, *grouped, *listed)}


@pytest.mark.parametrize("expression", expressions())
def test_an_expression_names_series_and_labels_that_exist(expression: str) -> None:
    families = families_of(expression)
    assert families
    known = SCRAPED.union(*(family.labels for family in families))
    if "_bucket" in expression:
        known |= {"le"}
    assert labels_of(expression) <= known


def test_every_family_is_shown() -> None:
    shown = {family.name for expression in expressions() for family in families_of(expression)}
    assert shown == {family.name for family in FAMILIES}


def test_percentiles_are_computed_over_all_ingresses() -> None:
    for expression in expressions():
        if "histogram_quantile" in expression:
            assert re.search(r"sum by \(le\b", expression)


def test_legends_name_labels_that_their_expression_keeps() -> None:
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            wanted = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            assert wanted <= labels_of(target["expr"])


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not taken & cells
        taken |= cells
