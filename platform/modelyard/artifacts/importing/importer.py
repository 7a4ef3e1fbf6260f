"""Import a model: files, identity, golden answers, and a version in the models' folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from modelyard.artifacts.contents import refuse_remote_code
from modelyard.artifacts.importing.aside import aside, move_into_place
from modelyard.artifacts.importing.author import Author
from modelyard.artifacts.importing.copying import file_errors_named
from modelyard.artifacts.importing.identity import identity_of
from modelyard.artifacts.importing.origin import Helpers, fill
from modelyard.artifacts.importing.present import damage_of, repair, same
from modelyard.artifacts.importing.role import role_of
from modelyard.artifacts.importing.source_errors import said_of_source
from modelyard.artifacts.manifest import Identity, Manifest
from modelyard.artifacts.package import write_manifest
from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind


@dataclass(frozen=True, slots=True)
class Tools:
    """What an import asks of the machine.

    engine_runs: does the installed vLLM know an architecture. installed: a distribution's version.
    check_questions: raises ArtifactError when what is to be recorded cannot be asked of a kind.
    record: write golden.json into a packaged folder, from what the model answers here; None: no
    golden prompts. fetch: the folder of an artifact's address. report: takes a line for the person
    who imports.
    """

    engine_runs: Callable[[str], bool]
    installed: Callable[[str], str | None]
    check_questions: Callable[[Kind], None]
    record: Callable[[Path], None] | None
    fetch: Callable[[str], Path]
    report: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Imported:
    """made: False when the same version was there already, whole."""

    folder: Path
    manifest: Manifest
    made: bool


def import_model(
    source: str,
    author: Author,
    models: Path,
    tools: Tools,
    *,
    base: str | None = None,
    tokenizer: Path | None = None,
) -> Imported:
    """The model at `source` as `models`/name/version; other bytes under a version are refused.

    A version that is there is read whole; where it is damaged, the new copy takes its place.
    Raises ArtifactError; nothing is left behind then.
    """

    def check(folder: Path, where: str) -> None:
        refuse_remote_code(folder)
        tools.check_questions(role_of(folder, author, tools.engine_runs, where).kind)

    target = models / author.name / author.version
    with (
        aside(target.parent) as folder,
        said_of_source(folder, source),
        file_errors_named(folder),
    ):
        helpers = Helpers(check, tools.check_questions, tools.fetch, base, tokenizer)
        filled = fill(source, folder, helpers)
        for note in filled.notes:
            tools.report(note)
        license_ = author.license or filled.license
        if license_ is None:
            raise ArtifactError(
                f"{source}: no model card names a license: say --license, e.g. Apache-2.0"
            )
        role = role_of(folder, author, tools.engine_runs, source)
        identity = identity_of(folder, author, role, filled.source, license_, tools.installed)
        manifest = write_manifest(folder, identity)
        if target.exists():
            return _present(target, manifest, folder, identity, tools)
        if tools.record is not None:
            tools.record(folder)
            manifest = write_manifest(folder, identity)
        move_into_place(folder, target)
    return Imported(target, manifest, made=True)


def _present(
    target: Path, new: Manifest, folder: Path, identity: Identity, tools: Tools
) -> Imported:
    there = same(target, new)
    damage = damage_of(target, there)
    if damage is not None:
        tools.report(f"the version that is there is damaged ({damage})")
        repair(target, there, folder, identity, tools.record)
        tools.report("the new import has taken its place: its digest is the same")
    return Imported(target, there, made=damage is not None)
