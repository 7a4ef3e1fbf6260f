"""The drawing is well-formed XML, the same each time, and as wide as what it draws."""

import xml.etree.ElementTree as ET

import pytest

from placement.planned import make_plan
from placement.svg import to_svg
from tests.placement.fleets import figure_7, memory_of

SVG = "{http://www.w3.org/2000/svg}"


def figure_7_drawn() -> str:
    spec = figure_7()
    return to_svg(spec, make_plan(spec, memory_of(spec), partial=True))


def test_the_same_plan_is_the_same_bytes() -> None:
    assert figure_7_drawn() == figure_7_drawn()


@pytest.mark.parametrize(("name", "gb"), [("large", 51), ("medium", 36), ("xlarge", 56)])
def test_a_model_is_as_wide_as_its_part_of_a_device(name: str, gb: int) -> None:
    root = ET.fromstring(figure_7_drawn())
    widths = {rect.findtext(f"{SVG}title"): rect.get("width") for rect in root.iter(f"{SVG}rect")}
    full, own = widths["free"], widths[f"support-{name}@1.0.0: {gb} GB"]
    assert full is not None
    assert own == f"{float(full) * gb / 80:.1f}"


def test_nothing_is_drawn_outside_the_picture_and_the_figures_are_told() -> None:
    root = ET.fromstring(figure_7_drawn())
    height, width = float(root.get("height", 0)), float(root.get("width", 0))
    for rect in root.iter(f"{SVG}rect"):
        assert float(rect.get("x", 0)) + float(rect.get("width", 0)) <= width
        assert float(rect.get("y", 0)) + float(rect.get("height", 0)) <= height
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert "24 GB free, of no use to any model" in texts
    assert "WITHOUT A PLACE: support-next@1.0.0, 1 replica" in texts
