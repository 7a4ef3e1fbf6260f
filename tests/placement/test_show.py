"""The plan on a terminal: the figures of Figure 7, and bars that are never too long."""

from hypothesis import given, settings
from hypothesis import strategies as st

from placement.free import free_of
from placement.planned import make_plan
from placement.segments import marks_of, segments_of
from placement.show import WIDTH, bar, plan_lines
from tests.placement.fleets import figure_7, fleet, memory_of, model, replicas, shared

FIGURE_7 = """\
h100, zone local: H100, each device of 80 GB shared, 2.5 per machine and hour
  h100-0-d0  [BBBBBBBBBBBBBB..................]  36 GB used, 44 GB free  B support-medium@1.0.0
  h100-1-d0  [AAAAAAAAAAAAAAAAAAAA............]  51 GB used, 29 GB free, of no use to any model  \
A support-large@1.0.0
  h100-2-d0  [DDDDDDDDDDDDDDDDDDDDDD..........]  56 GB used, 24 GB free, of no use to any model  \
D support-xlarge@1.0.0

3 replicas at 3 of 3 places; all of it takes at least 4
  WITHOUT A PLACE: support-next@1.0.0, 1 replica
cost of these places, each a part of its machine, 7.50 per hour; all of it costs at least 10.00
machines in use: 7.50 per hour (5,475 per month)
all machines:    7.50 per hour (5,475 per month)"""


def test_figure_7_is_shown_as_it_is() -> None:
    spec = figure_7()
    plan = make_plan(spec, memory_of(spec), partial=True)
    assert "\n".join(line.plain for line in plan_lines(spec, plan)) == FIGURE_7


def test_places_that_hold_the_same_are_one_line_and_a_swap_area_is_named() -> None:
    models = {
        "m": model(70, scaling=replicas(3)),
        "s": model(20, swappable=True, scaling=replicas(1, 0)),
    }
    spec = fleet({"gpu": shared(6)}, models)
    lines = [line.plain for line in plan_lines(spec, make_plan(spec, memory_of(spec)))]
    assert sum(" and 2 alike " in line and "m@1" in line for line in lines) == 1
    assert "swap area gpu: 20 GB, in turn: s@1 20 GB" in lines
    assert "4 replicas at 4 of 6 places; at least 4 needed" in lines


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 80), min_size=1, max_size=12))
def test_a_bar_has_its_width_whatever_is_in_it(sizes: list[int]) -> None:
    models = {f"m{i}": model(gb, cpus=0.1) for i, gb in enumerate(sizes)}
    spec = fleet({"gpu": shared(2)}, models)
    plan = make_plan(spec, memory_of(spec), partial=True)
    marks = marks_of(plan.problem)
    for one in free_of(plan.problem, plan.packing):
        assert len(bar(one, segments_of(plan.problem, one), marks).plain) == WIDTH + 2
