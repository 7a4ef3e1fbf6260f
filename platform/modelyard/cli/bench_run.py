"""What `modelyard bench` does, apart from its flags."""

from __future__ import annotations

import asyncio
import gc
import resource
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import typer
from rich.console import Console

from modelyard.bench.merge import merge
from modelyard.bench.request import Flags, load_of
from modelyard.bench.result import Options, Result, read_result
from modelyard.bench.session import check_tenants, measure
from modelyard.bench.shorthand import parse_keys
from modelyard.bench.terminal import ProgressBar, print_result
from modelyard.cli.bench import Outputs
from modelyard.cli.check import Output
from modelyard.config.settings import Settings
from modelyard.contract.errors import ConfigError

LOCAL_URL: Final = "http://127.0.0.1:8000"
T = TypeVar("T")


def run(
    flags: Flags, url: str | None, api_keys: Sequence[str], outputs: Outputs, **options: Any
) -> None:
    """options: those of `Options` that no other argument gives."""
    settings = Settings.from_environment()
    load = _checked(lambda: load_of(flags))
    keys = _checked(lambda: parse_keys(api_keys))
    if url is None and not keys and settings.api_key is not None:
        # Only where it belongs: the platform's key must not reach whatever --url names.
        keys = {"": settings.api_key}
    _checked(lambda: check_tenants(load.workload, keys))
    _checked(lambda: _check_places(outputs))
    asked = Options(
        url=_checked(lambda: _http(url or settings.url or LOCAL_URL)),
        tenants_with_keys=tuple(keys),
        rates_per_s=load.rates_per_s,
        duration_s=load.duration_s,
        warmup_s=load.warmup_s,
        **options,
    )
    with _undisturbed():
        result = asyncio.run(measure(load, asked, keys, ProgressBar(Console(stderr=True))))
    _show(result, outputs)
    if not any(level.total.completed for level in result.levels):
        raise typer.Exit(1)


def merge_files(files: Sequence[Path], outputs: Outputs) -> None:
    results = _checked(lambda: [read_result(file) for file in files])
    _show(_checked(lambda: merge(results)), outputs)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """This process as a generator of load."""
    # The open loop has no bound of its own, and the usual 1024 files must not be it.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # A collection over all that was imported takes tens of milliseconds, in which nothing is sent.
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _check_places(outputs: Outputs) -> None:
    """Before the run and not after it."""
    for file in (outputs.json_file, outputs.html_file):
        if file is not None and not file.absolute().parent.is_dir():
            raise ConfigError(f"{file} cannot be written: its folder does not exist, make it")


def _show(result: Result, outputs: Outputs) -> None:
    text = result.as_json()
    if outputs.output is Output.JSON:
        typer.echo(text)
    else:
        print_result(result, Console())
    if outputs.json_file is not None:
        outputs.json_file.write_text(text + "\n")
    if outputs.html_file is not None:
        from modelyard.bench.page import as_html  # matplotlib takes half a second

        outputs.html_file.write_text(as_html(result))


def _http(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"--url {url} is no address of HTTP: write http://HOST:PORT")
    return url


def _checked(make: Callable[[], T]) -> T:
    """What is wrong with the request is wrong usage: a sentence, exit code 2."""
    try:
        return make()
    except ConfigError as error:
        typer.echo(f"modelyard bench: {error}", err=True)
        raise typer.Exit(2) from error
