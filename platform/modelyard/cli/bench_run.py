"""What `modelyard bench` does, apart from its flags."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

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
    _checked(lambda: _check_places(outputs))
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
    files = [file for file in (outputs.json_file, outputs.html_file) if file is not None]
    if len(files) == 2 and files[0].absolute() == files[1].absolute():
        raise ConfigError(f"--json and --html both name {files[0]}: give each a file of its own")
    for file in files:
        if not file.absolute().parent.is_dir():
            raise ConfigError(f"{file} cannot be written: its folder does not exist, make it")
        try:
            _try_to_open(file)
        except OSError as error:
            raise ConfigError(
                f"{file} cannot be written ({error.strerror}): give the path of a file"
            ) from error


def _try_to_open(file: Path) -> None:
    """Not os.access: that says yes to root, and nothing of a file system that is read-only."""
    new = not os.path.lexists(file)
    with file.open("ab"):
        pass
    if new:  # a run that is broken off leaves no empty file
        file.unlink()


def _show(result: Result, outputs: Outputs) -> None:
    """Files first: whoever reads the output may be gone. A full disk still leaves the output."""
    text = result.as_json()
    try:
        if outputs.json_file is not None:
            outputs.json_file.write_text(text + "\n")
        if outputs.html_file is not None:
            from modelyard.bench.page import as_html  # matplotlib takes half a second

            outputs.html_file.write_text(as_html(result))
    except OSError as error:
        typer.echo(f"modelyard bench: {error.filename}: not written ({error.strerror})", err=True)
        raise typer.Exit(1) from error
    finally:
        if outputs.output is Output.JSON:
            typer.echo(text)
        else:
            print_result(result, Console())


def _http(url: str) -> str:
    """The address if requests can be sent there. Raises ConfigError."""
    wanted = f"--url {url!r} is no address to send to: write http://HOST:PORT"
    try:
        parsed = urlsplit(url)
        usable = parsed.scheme in ("http", "https") and parsed.hostname and parsed.port != 0
    except ValueError as error:
        raise ConfigError(f"{wanted} ({error})") from error
    if not usable:
        raise ConfigError(wanted)
    if not url.isprintable() or any(character.isspace() for character in url):
        raise ConfigError(f"{wanted}, without a space")
    if parsed.query or parsed.fragment:
        raise ConfigError(f"{wanted}, without ? and #: the route's path is put behind it")
    if parsed.username is not None or parsed.password is not None:
        raise ConfigError(
            "--url holds a user or a password, and the result says the url: remove it"
        )
    return url


def _checked(make: Callable[[], T]) -> T:
    """What is wrong with the request is wrong usage: a sentence, exit code 2."""
    try:
        return make()
    except ConfigError as error:
        typer.echo(f"modelyard bench: {error}", err=True)
        raise typer.Exit(2) from error
