"""`modelyard models show|push|pull|verify`: versions in a folder or a bucket."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from modelyard.artifacts.manifest import Manifest, read_manifest
from modelyard.artifacts.pull import pull, verify_stored
from modelyard.artifacts.stores import Store, find_version, open_store
from modelyard.artifacts.verify import verify
from modelyard.cli.check import Output
from modelyard.cli.transfer_progress import shown
from modelyard.config.settings import Settings, expand
from modelyard.contract.errors import ArtifactError, ModelyardError

StoreOption = Annotated[
    str | None,
    typer.Option("--store", metavar="URI", help="file:// or s3://; else the models' folder."),
]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How to print.")]


@contextmanager
def one_sentence() -> Iterator[None]:
    """An error of ours is printed and is exit code 1."""
    try:
        yield
    except ModelyardError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error


def show(
    what: Annotated[str, typer.Argument(metavar="NAME[@VERSION]|FOLDER|URI")],
    store: StoreOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """A version's manifest, and the digest that `args.digest` pins. Exit code 1: not there."""
    with one_sentence():
        manifest = _manifest_of(what, store, Settings.from_environment())
    if output is Output.JSON:
        record = manifest.model_dump(mode="json", by_alias=True, exclude_none=True)
        typer.echo(json.dumps({"digest": manifest.digest()} | record, indent=2))
    else:
        typer.echo("\n".join(_lines(manifest)))


def push(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A packaged folder.")],
    uri: Annotated[str, typer.Argument(metavar="URI", help="The store: s3://bucket/prefix.")],
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Read every stored byte, and send damaged files again."),
    ] = False,
) -> None:
    """Put a version in a store. Exit code 1: it does not verify, or other bytes are there.

    Of a version that is there, files that are missing or of another size are sent again. That, and
    --repair, change no version: the bytes are the ones that its manifest names.
    """
    with one_sentence():
        store = open_store(uri, Settings.from_environment().home)
        with shown(f"push {folder.name}", Console(stderr=True)) as progress:
            pushed = store.push(folder, progress, repair=repair)
    done = "pushed" if pushed.made else "repaired" if pushed.sent_again else "present"
    typer.echo(f"{done}  {pushed.uri}  {pushed.manifest.digest()}")
    for path in pushed.sent_again:
        typer.echo(f"  sent again: {path}")


def pull_version(
    uri: Annotated[str, typer.Argument(metavar="URI", help="s3://bucket/prefix/NAME/VERSION.")],
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Else the models' folder/NAME/VERSION.")
    ] = None,
) -> None:
    """Fetch a version into a folder, verified as it arrives; a broken-off one is resumed.

    One that is there is verified, and fetched again where it is damaged.
    """
    with one_sentence():
        settings = Settings.from_environment()
        stored = find_version(uri, settings.home)
        manifest = stored.manifest
        own = settings.models / manifest.name / manifest.version
        target = own if folder is None else expand(str(folder), "DIR").absolute()
        with shown(f"pull {manifest.full_name}", Console(stderr=True)) as progress:
            done = pull(stored, target, progress)
    typer.echo(f"{done}  {target}  {manifest.digest()}")


def verify_version(
    what: Annotated[str, typer.Argument(metavar="FOLDER|URI")],
) -> None:
    """Read every byte of a version, and hold it against its manifest. Exit code 1: it differs."""
    with one_sentence():
        _expect_named(what)
        if "://" in what:
            stored = find_version(what, Settings.from_environment().home)
            manifest = stored.manifest
            with shown(f"verify {manifest.full_name}", Console(stderr=True)) as progress:
                verify_stored(stored, progress)
        else:
            manifest = _verify_folder(Path(what))
    typer.echo(
        f"verified  {manifest.full_name}  {len(manifest.files)} files  "
        f"{manifest.size_bytes / 1e6:.1f} MB  {manifest.digest()}"
    )


def _verify_folder(folder: Path) -> Manifest:
    # It needs numpy, which no other command of this group does.
    from modelyard.artifacts.contents import verify_contents

    manifest = read_manifest(folder)
    verify(folder, manifest)
    verify_contents(folder, manifest)
    return manifest


def _expect_named(what: str) -> None:
    # Path("") is the folder that one stands in.
    if not what.strip():
        raise ArtifactError(
            "no version is named: write NAME@VERSION, the folder of a version, or its address"
        )


def _manifest_of(what: str, store: str | None, settings: Settings) -> Manifest:
    _expect_named(what)
    if "://" in what:
        return find_version(what, settings.home).manifest
    if "/" in what or Path(what).is_dir():
        return read_manifest(Path(what))
    name, _, version = what.partition("@")
    where = open_store(store or settings.models.as_uri(), settings.home)
    return where.find(name, version or _only_version(where, name)).manifest


def _only_version(store: Store, name: str) -> str:
    versions = store.versions(name)
    if len(versions) == 1:
        return versions[0]
    if not versions:
        raise ArtifactError(f"{store.uri}: holds no {name!r}: run `modelyard models list`")
    choices = ", ".join(f"{name}@{version}" for version in versions)
    raise ArtifactError(f"{store.uri}: holds several versions, name one: {choices}")


def _lines(manifest: Manifest) -> Iterator[str]:
    limits, device, runtime = manifest.limits, manifest.device, manifest.runtime
    yield f"{manifest.full_name}  {manifest.kind}"
    yield f"digest     {manifest.digest()}"
    yield f"license    {manifest.license}, source {manifest.source}"
    yield f"limits     {_said(limits.model_dump(exclude_none=True))}"
    yield f"runtime    {_said(runtime.model_dump(exclude_none=True, exclude={'engine_args'}))}"
    yield f"arguments  {_said(runtime.engine_args.model_dump(exclude_none=True)) or 'none'}"
    yield f"device     {_said(device.model_dump())}"
    yield f"weights    {manifest.weights.dtype}, {manifest.weights.size_bytes / 1e6:.1f} MB"
    yield f"tokenizer  {manifest.tokenizer.vocab_size} tokens"
    yield f"measured   {_said(manifest.measured) or 'nothing'}"
    yield f"golden     {manifest.warmup.golden_sha256 or 'none: no self-test'}"
    for file in manifest.files:
        yield f"  {file.sha256[:12]}  {file.size_bytes:>14,}  {file.path}"


def _said(fields: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in fields.items())
