"""`modelyard models import`: from a published model to a version of ours."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer
from rich.console import Console

from modelyard.artifacts.cache import fetch
from modelyard.artifacts.importing.author import Author
from modelyard.artifacts.importing.importer import Imported, Tools, import_model
from modelyard.artifacts.importing.recording import answer_lines, record
from modelyard.artifacts.importing.snippet import app_entry, route_entry
from modelyard.artifacts.installed import installed
from modelyard.artifacts.manifest import GOLDEN_NAME, ComputeDtype, ScoreKind
from modelyard.artifacts.stores import Store, open_store
from modelyard.cli.transfer_progress import shown
from modelyard.config.settings import DEFAULT_HOME, Settings, expand
from modelyard.contract.errors import ArtifactError, ModelyardError
from modelyard.contract.operations import Kind
from modelyard.lifecycle.questions import read_questions

_BASE = "What a LoRA is merged into: a folder, org/name@revision, or an artifact's address."


def import_(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE", help="A Hugging Face folder, org/name@revision, .gguf or LoRA folder."
        ),
    ],
    name: Annotated[str, typer.Option("--name", help="The artifact's name.")],
    version: Annotated[str, typer.Option("--version", help="The artifact's version.")],
    kind: Annotated[
        Kind | None, typer.Option("--kind", help="What it is served as; else config.json tells.")
    ] = None,
    license_: Annotated[
        str | None, typer.Option("--license", help="Else the model card's.")
    ] = None,
    from_: Annotated[
        str | None, typer.Option("--from", help="Where it came from, in words, for the manifest.")
    ] = None,
    max_context_tokens: Annotated[
        int | None, typer.Option(min=1, help="Else what the model was made for.")
    ] = None,
    max_output_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Of a generator; else 1024, or a quarter of its context."),
    ] = None,
    drain_s: Annotated[
        float | None,
        typer.Option(min=1, help="The longest answer's time; else at 30 tokens/s, plus 30 s."),
    ] = None,
    dtype: Annotated[
        ComputeDtype | None,
        typer.Option(help="It computes in; else bfloat16, or float16 of such weights."),
    ] = None,
    accelerators: Annotated[
        int | None,
        typer.Option(min=0, max=64, help="Of one replica; else 1 for a generator on a GPU's vLLM."),
    ] = None,
    min_memory_gb: Annotated[
        float | None, typer.Option(min=0.001, help="Of one replica; else counted.")
    ] = None,
    tool_call_parser: Annotated[str | None, typer.Option(help="vLLM's name of it.")] = None,
    reasoning_parser: Annotated[str | None, typer.Option(help="vLLM's name of it.")] = None,
    score_kind: Annotated[
        ScoreKind | None,
        typer.Option(help="Of a reranker; else by whether it has a head."),
    ] = None,
    embedding_space: Annotated[
        str | None, typer.Option(help="Of an embedder: shared by versions with the same vectors.")
    ] = None,
    base: Annotated[str | None, typer.Option("--base", help=_BASE)] = None,
    tokenizer: Annotated[
        Path | None, typer.Option("--tokenizer", metavar="DIR", help="Of a GGUF's original model.")
    ] = None,
    golden: Annotated[
        Path | None,
        typer.Option("--golden", metavar="FILE", help="Prompts to record, a list of JSON."),
    ] = None,
    no_golden: Annotated[
        bool, typer.Option("--no-golden", help="Record no answers: replicas test nothing.")
    ] = False,
    to: Annotated[
        str | None, typer.Option("--to", metavar="URI", help="Push it to this store as well.")
    ] = None,
    models: Annotated[
        Path | None,
        typer.Option("--models", metavar="DIR", help="The models' folder; MODELYARD_HOME/models."),
    ] = None,
) -> None:
    """Make an artifact of a published model. Exit code 0: it is there, 1: refused."""
    if golden is not None and no_golden:
        raise typer.BadParameter("choose one of --golden and --no-golden")
    author = Author(
        name=name,
        version=version,
        kind=kind,
        license=license_,
        source=from_,
        max_context_tokens=max_context_tokens,
        max_output_tokens=max_output_tokens,
        drain_s=drain_s,
        dtype=dtype,
        accelerators=accelerators,
        min_memory_gb=min_memory_gb,
        tool_call_parser=tool_call_parser,
        reasoning_parser=reasoning_parser,
        score_kind=score_kind,
        embedding_space=embedding_space,
    )
    settings = Settings.from_environment()
    folder = settings.models if models is None else expand(str(models), "--models").absolute()
    try:
        store = None if to is None else _store(to, name, settings)
        tools = _tools(settings, golden, no_golden=no_golden)
        imported = import_model(source, author, folder, tools, base=base, tokenizer=tokenizer)
        uri = _address(imported.folder, settings)
        _say_what_it_is(imported)
        if store is not None:
            with shown(f"push {name}@{version}", Console(stderr=True)) as progress:
                pushed = store.push(imported.folder, progress)
            typer.echo(f"{'pushed' if pushed.made else 'present'}  {pushed.uri}")
            uri = pushed.uri
    except ModelyardError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error
    typer.echo("\n# In the Serve config, under `applications`:")
    typer.echo(app_entry(imported.folder, imported.manifest, uri))
    typer.echo("\n# and under the table's `routes`, with the name that callers use:")
    typer.echo(route_entry(imported.manifest))


def _store(to: str, name: str, settings: Settings) -> Store:
    """Asked a small question, so that a bucket that is not there and credentials that are refused
    are said before gigabytes are copied and the model is loaded."""
    store = open_store(to, settings.home)
    store.versions(name)
    return store


def _tools(settings: Settings, golden: Path | None, *, no_golden: bool) -> Tools:
    return Tools(
        engine_runs=lambda architecture: architecture in _architectures(),
        installed=installed,
        check_questions=lambda kind: None if golden is None else _check_questions(golden, kind),
        record=None if no_golden else lambda folder: _record(folder, golden),
        fetch=lambda uri: fetch(uri, settings).folder,
        report=typer.echo,
    )


def _check_questions(golden: Path, kind: Kind) -> None:
    """Before gigabytes are copied and the model is loaded to answer them."""
    read_questions(golden, kind)


def _record(folder: Path, golden: Path | None) -> None:
    typer.echo("recording golden answers: the model is loaded as a replica loads it ...")
    record(folder, golden)


@cache
def _architectures() -> frozenset[str]:
    """What the installed vLLM runs. Asked in a process of its own: the core loads no engine."""
    command = [sys.executable, "-m", "deployments.vllm_architectures"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise ArtifactError(
            f"the vLLM that is installed here does not start ({last}): install "
            "requirements/cpu.txt or gpu.txt"
        )
    return frozenset(done.stdout.split())


def _address(folder: Path, settings: Settings) -> str:
    """Under the installation's home as `~/.modelyard`, which every node reads as its own."""
    if folder.is_relative_to(settings.home):
        return f"file://{DEFAULT_HOME}/{quote(folder.relative_to(settings.home).as_posix())}"
    return folder.as_uri()


def _say_what_it_is(imported: Imported) -> None:
    manifest, device = imported.manifest, imported.manifest.device
    typer.echo(
        f"{'made' if imported.made else 'present'}  {manifest.full_name}  {manifest.kind}  "
        f"{manifest.size_bytes / 1e6:.1f} MB  {manifest.digest()}\n{imported.folder}\n"
        f"license {manifest.license}, source {manifest.source}\n"
        f"context {manifest.limits.max_context_tokens} tokens, {manifest.weights.dtype} computed "
        f"in {manifest.runtime.dtype} by {manifest.runtime.engine} {manifest.runtime.version}, "
        f"{device.accelerators} accelerators, {device.min_memory_gb:g} GB"
    )
    if (imported.folder / GOLDEN_NAME).is_file():
        typer.echo(
            "golden answers, which every replica must repeat before it serves. Are they right?"
        )
        for line in answer_lines(imported.folder):
            typer.echo(line)
    else:
        typer.echo("warning: no golden prompts, so a replica serves without a self-test", err=True)
