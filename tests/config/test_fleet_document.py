"""A fleet spec and its team files are one document, and each fault knows its own file."""

import hashlib
from pathlib import Path

import pytest

from modelyard.config.document import load_document
from modelyard.config.faults import DocumentError
from modelyard.config.fleet_document import FleetDocument, with_teams
from modelyard.config.fleet_file import FleetFaults, is_fleet, read_fleet

SPEC = """schema: modelyard/fleet/v1
include: [teams/search.fleet.yaml]
http_options: {host: 127.0.0.1}
control: {state_path: ~/c.sqlite}
node_pools: {host: {nodes: 1, memory_gb: 16}}
models:
  chat:
    kind: generator
    pool: [host]
    memory_gb: 2
    serve: {max_ongoing_requests: 4}
    versions: {"1": {artifact: "file:///m/chat/1"}}
routes: {chat: {stable: chat@1}}
tenants: {demo: {models: ["*"]}}
keys:
- {id: demo-1, tenant: demo, sha256: "%s", roles: [invoke]}
""" % ("a" * 64)
TEAM = """schema: modelyard/fleet/v1
models:
  vectors:
    kind: embedder
    pool: [host]
    memory_gb: 1
    serve: {max_ongoing_requests: 4}
    versions: {"1": {artifact: "file:///m/vectors/1"}}
routes: {vectors: {stable: vectors@1}}
tenants: {search: {models: [vectors]}}
keys:
- {id: search-1, tenant: search, sha256: "%s", roles: [invoke]}
quotas: {search: {max_active_sequences: 4}}
""" % ("b" * 64)


def put(tmp_path: Path, team: str = TEAM, spec: str = SPEC) -> Path:
    (tmp_path / "teams").mkdir(exist_ok=True)
    (tmp_path / "teams" / "search.fleet.yaml").write_text(team)
    path = tmp_path / "x.fleet.yaml"
    path.write_text(spec)
    return path


def faults(tmp_path: Path, team: str = TEAM, spec: str = SPEC) -> list[str]:
    with pytest.raises(FleetFaults) as error:
        read_fleet(put(tmp_path, team, spec))
    return [str(fault).replace(f"{tmp_path}/", "") for fault in error.value.faults]


def test_a_team_adds_models_routes_tenants_keys_and_quotas(tmp_path: Path) -> None:
    file = read_fleet(put(tmp_path))
    assert list(file.spec.models) == ["chat", "vectors"]
    assert list(file.spec.routes) == ["chat", "vectors"]
    assert [key.id for key in file.spec.keys] == ["demo-1", "search-1"]
    assert file.spec.quotas["search"].max_active_sequences == 4
    assert [Path(one).name for one in file.document.sources] == [
        "x.fleet.yaml",
        "search.fleet.yaml",
    ]


def test_a_name_in_two_files_is_a_fault_that_names_both(tmp_path: Path) -> None:
    team = TEAM.replace("  vectors:\n", "  chat:\n")
    assert faults(tmp_path, team)[0] == (
        "teams/search.fleet.yaml:3: models.chat: is in x.fleet.yaml:7 as well: give it another "
        "name, or remove one of the two"
    )


def test_a_name_in_two_team_files_names_both_of_them(tmp_path: Path) -> None:
    put(tmp_path)
    (tmp_path / "teams" / "more.fleet.yaml").write_text(
        "schema: modelyard/fleet/v1\nroutes: {vectors: {stable: vectors@1}}\n"
    )
    spec = SPEC.replace("[teams/", "[teams/more.fleet.yaml, teams/")
    assert "is in teams/more.fleet.yaml:2 as well" in faults(tmp_path, spec=spec)[0]


def test_a_fault_in_a_team_file_is_told_in_that_file(tmp_path: Path) -> None:
    team = TEAM.replace("memory_gb: 1", "memory_gb: 0")
    (fault,) = faults(tmp_path, team)
    assert fault.startswith("teams/search.fleet.yaml:6: models.vectors.memory_gb: 0: ")


def test_a_fault_in_a_teams_key_has_its_place_in_the_teams_own_list(tmp_path: Path) -> None:
    team = TEAM.replace("roles: [invoke]", "roles: [invoke], rolls: []")
    (fault,) = faults(tmp_path, team)
    assert fault.startswith("teams/search.fleet.yaml:12: keys.0.rolls: unknown key: did you mean")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("node_pools: {mine: {nodes: 1, memory_gb: 8}}", "node_pools: not a team's to say"),
        ("include: [other.yaml]", "include: not a team's to say"),
        ("model: {}", "model: unknown key: did you mean models?"),
        ("tiers: [paid]", "tiers: must be a mapping of names"),
        ("issuers: {x: 1}", "issuers: must be a list"),
    ],
)
def test_what_a_team_may_not_say(tmp_path: Path, line: str, expected: str) -> None:
    assert any(expected in fault for fault in faults(tmp_path, f"{TEAM}{line}\n"))


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        ("[teams/gone.fleet.yaml]", "include.0: 'teams/gone.fleet.yaml': there is no file"),
        ("[/etc/x.yaml]", "must be relative to this file"),
        ("[~/x.yaml]", "must be relative to this file"),
        ("[x.fleet.yaml]", "included twice, or includes itself"),
        ("[teams/search.fleet.yaml, teams/../teams/search.fleet.yaml]", "included twice"),
        ("teams/search.fleet.yaml", "include: 'teams/search.fleet.yaml': "),
    ],
)
def test_an_include_that_cannot_be(tmp_path: Path, include: str, expected: str) -> None:
    spec = SPEC.replace("[teams/search.fleet.yaml]", include)
    assert any(expected in fault for fault in faults(tmp_path, spec=spec))


def test_a_team_file_without_its_schema_is_told_so(tmp_path: Path) -> None:
    team = TEAM.replace("schema: modelyard/fleet/v1\n", "")
    assert "write modelyard/fleet/v1" in faults(tmp_path, team)[0]


def test_a_team_file_that_is_no_yaml_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"search\.fleet\.yaml"):
        read_fleet(put(tmp_path, "a: [\n"))


def document(path: Path) -> FleetDocument:
    merged, found = with_teams(load_document(path))
    assert not found
    return merged


def test_the_digest_of_one_file_is_its_own(tmp_path: Path) -> None:
    path = put(tmp_path, spec=SPEC.replace("include: [teams/search.fleet.yaml]\n", ""))
    assert document(path).digest() == hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_digest_is_of_every_file_and_of_no_folder(tmp_path: Path) -> None:
    digests = set()
    for folder, team in (("a", TEAM), ("b", TEAM), ("c", TEAM + "# a word\n")):
        (tmp_path / folder).mkdir()
        digests.add(document(put(tmp_path / folder, team)).digest())
    assert len(digests) == 2


def test_a_fleet_spec_is_told_from_other_files(tmp_path: Path) -> None:
    assert is_fleet(load_document(put(tmp_path)))
    other = tmp_path / "x.yaml"
    other.write_text("schema: modelyard/table/v1\n")
    assert not is_fleet(load_document(other))
