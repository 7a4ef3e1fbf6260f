"""What `modelyard plan` does, once its options are read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from modelyard.cli.defrag_options import DefragOptions
from modelyard.cli.plan_check import Fleet, load_fleet
from modelyard.cli.plan_file import alone_with, previous_cells, write_serve, write_whole
from modelyard.cli.plan_what_if import tell_what_if as what_if
from modelyard.config.fleet_file import FleetFaults
from modelyard.config.settings import Settings
from placement.infeasible import Infeasible
from placement.plan import Cell, Plan
from placement.planned import make_plan
from placement.record import plan_record
from placement.show import plan_lines
from placement.svg import to_svg

__all__ = ["alone_with", "defrag", "faults_as_lines", "plan", "read", "what_if"]


@contextmanager
def faults_as_lines() -> Iterator[None]:
    """Faults of the spec end the command as `modelyard check` prints them."""
    try:
        yield
    except FleetFaults as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error


def read(path: Path, serve: Path | None) -> tuple[Fleet, tuple[Cell, ...]]:
    """The spec, and what the Serve config has placed. Raises FleetFaults and ConfigError."""
    fleet = load_fleet(path, Settings.from_environment())
    for warning in fleet.warnings:
        typer.echo(str(warning), err=True)
    return fleet, previous_cells(serve)


def plan(
    fleet: Fleet,
    previous: Sequence[Cell],
    lost: frozenset[str],
    serve: Path | None,
    svg: Path | None,
    *,
    partial: bool,
    as_json: bool,
) -> bool:
    """Plan, print, draw, write; whether everything has a place. Raises Infeasible."""
    why: Infeasible | None = None
    try:
        made = make_plan(fleet.spec, fleet.memory, previous, lost=lost, partial=partial)
    except Infeasible as error:
        # What fits is told and drawn, before it is said what does not and why.
        why = error
        made = make_plan(fleet.spec, fleet.memory, previous, lost=lost, partial=True)
    if svg is not None:
        write_whole(svg, to_svg(fleet.spec, made).encode())
    tell_plan(fleet, made, why, as_json=as_json)
    if why is not None:
        raise why
    if serve is not None:
        write_serve(fleet, made, serve)
    return not made.packing.unplaced


def defrag(fleet: Fleet, previous: Sequence[Cell], serve: Path, options: DefragOptions) -> None:
    # It loads what asks a running cluster, which no other plan needs.
    from modelyard.cli import plan_defrag

    settings = Settings.from_environment()
    plan_defrag.run(
        fleet, previous, lambda made: write_serve(fleet, made, serve), settings, options
    )


def tell_plan(fleet: Fleet, made: Plan, why: Infeasible | None, *, as_json: bool) -> None:
    """why: there, where the plan leaves something out."""
    if as_json:
        record = plan_record(fleet.spec, made) | {"why_not": str(why) if why is not None else ""}
        typer.echo(json.dumps(record, indent=2))
        return
    _tell_lines(list(plan_lines(fleet.spec, made)))


def _tell_lines(lines: Sequence[Text]) -> None:
    """In colours where there is a terminal, one line each whatever its width."""
    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        console.print(line)
