from modelyard.config.table import Table, parse_table
from modelyard.routing.fleet import Fleet
from modelyard.routing.lanes import dedicated_cells, lane_of, slots_of
from modelyard.testing.in_memory import post, table_record

CHAT = {"stable": "gen@1.0.0", "constraints": [{"tenants": ["alpha"], "cell": "b"}]}


def table() -> Table:
    return parse_table(table_record(routes={"chat": CHAT, "team/embed": {"stable": "gen@1.0.0"}}))


def fleet() -> Fleet:
    made = Fleet()
    apps = ("gen@1.0.0", "gen@1.0.0--b", "gen@1.0.0--c")
    made.update(post(app, slots=slots) for app, slots in zip(apps, (10, 3, 7), strict=True))
    return made


def test_a_version_is_a_lane_and_a_dedicated_cell_is_another() -> None:
    route = table().routes["chat"]
    assert lane_of("gen@1.0.0", "beta", route) == "gen@1.0.0"
    assert lane_of("gen@1.0.0", "alpha", route) == "gen@1.0.0--b"


def test_slots_of_a_dedicated_cell_are_its_tenants_alone() -> None:
    assert slots_of("gen@1.0.0--b", dedicated_cells(table()), fleet()) == 3
    assert slots_of("gen@1.0.0", dedicated_cells(table()), fleet()) == 17


def test_a_version_without_replicas_has_no_slots() -> None:
    assert slots_of("gen@2.0.0", dedicated_cells(table()), fleet()) == 0
    assert slots_of("gen@2.0.0--b", dedicated_cells(table()), fleet()) == 0
