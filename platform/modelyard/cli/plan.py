"""`modelyard plan`: from a fleet spec to the Serve config that puts every replica in its place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from modelyard.cli.defrag_options import defrag_options

_OF_DEFRAG: Final = "--moves, --at-once, --pause-s, --ready-within-s and --execute"
SpecPath = Annotated[Path, typer.Argument(metavar="X.fleet.yaml", help="A fleet spec.")]
ServePath = Annotated[
    Path | None,
    typer.Option("-o", metavar="X.serve.yaml", help="Where the placement is kept: read, written."),
]


def plan(
    path: SpecPath,
    serve: ServePath = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what is placed where.")] = False,
    lost: Annotated[
        list[str] | None, typer.Option(metavar="MACHINE", help="It has gone. May be repeated.")
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Place what fits, the highest priority first.")
    ] = False,
    what_if: Annotated[
        list[str] | None,
        typer.Option(metavar="VERB=VALUE", help="Suppose, show, write nothing. May be repeated."),
    ] = None,
    defrag: Annotated[
        bool, typer.Option("--defrag", help="Free devices by a few moves; -o says what is placed.")
    ] = False,
    moves: Annotated[
        int | None, typer.Option(min=1, help="With --defrag: replicas at most, else 5 % of all.")
    ] = None,
    at_once: Annotated[
        int | None, typer.Option(min=1, help="With --defrag: moves made together, else 1.")
    ] = None,
    pause_s: Annotated[
        float | None, typer.Option(min=0, help="With --execute: between two batches, else 10.")
    ] = None,
    ready_within_s: Annotated[
        float | None,
        typer.Option(min=1, help="With --execute: for new replicas, else 900; then it is undone."),
    ] = None,
    execute: Annotated[
        bool, typer.Option("--execute", help="With --defrag: make the moves, not only show them.")
    ] = False,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it there.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Place every replica of a fleet, show where, and write the Serve config.

    What the -o file has placed stays where it fits. What-ifs: add-node=POOL:2,
    remove-node=MACHINE, lose-zone=a, add-model=NAME:memory_gb=54,pool=POOL,replicas=1,
    remove-model=NAME@V, replicas=NAME@V:3, swappable=NAME+NAME.
    Exit code 0: done, 1: it does not fit, or the spec has faults, 2: wrong usage.
    """
    if not os.path.exists(path):
        typer.echo(f"{path}: no such file: check the path", err=True)
        raise typer.Exit(2)
    if defrag and serve is None:
        typer.echo("--defrag moves what is placed: give the Serve config with -o", err=True)
        raise typer.Exit(2)
    if what_if and svg is not None:
        typer.echo("--what-if draws nothing: leave --svg out", err=True)
        raise typer.Exit(2)
    given = execute or any(one is not None for one in (moves, at_once, pause_s, ready_within_s))
    if not defrag and given:
        typer.echo(f"{_OF_DEFRAG} are of --defrag: add it", err=True)
        raise typer.Exit(2)
    # The planner's solver takes most of a second to load, and no other command needs it.
    from modelyard.cli import plan_run

    # What only shows reads the file, which is whole at every moment.
    writes = execute if defrag else not what_if
    with plan_run.faults_as_lines(), plan_run.alone_with(serve if writes else None):
        fleet, previous = plan_run.read(path, None if fresh else serve)
        gone = frozenset(lost or ())
        if defrag and serve is not None:
            asked = defrag_options(
                moves, at_once, pause_s, ready_within_s, execute=execute, as_json=as_json
            )
            plan_run.defrag(fleet, previous, serve, asked)
            return
        if what_if:
            fits = plan_run.what_if(fleet, previous, gone, what_if, as_json=as_json)
        else:
            fits = plan_run.plan(
                fleet, previous, gone, serve, svg, partial=partial, as_json=as_json
            )
    raise typer.Exit(0 if fits else 1)
