"""`modelyard plan --defrag`: fewer machines or devices in use, by a few moves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Any, Final

import typer

from cluster.local import LocalCluster
from cluster.moves import LiveApps
from cluster.observe import connected
from modelyard.cli.admin_client import AdminClient
from modelyard.cli.defrag_options import DefragOptions
from modelyard.cli.moving_platform import MovingPlatform
from modelyard.cli.plan_check import Fleet
from modelyard.config.settings import Settings
from modelyard.contract.errors import ConfigError
from placement.defrag import moves, price
from placement.fleet_problem import fleet_problem
from placement.move import Move, applied, replicas_of
from placement.mover import Mover
from placement.plan import Cell, Plan
from placement.planned import make_plan
from placement.problem import Packing
from placement.steps import Step, StepKind, pinned_areas, pinned_of, steps
from placement.unfinished import settled

SHARE_OF_A_PASS: Final = 0.05  # of all replicas
_NOT_THE_PLAN: Final = "the Serve config is not the plan of this spec: "
_PLAN_FIRST: Final = (
    "run `modelyard plan` with this -o, see with `modelyard check --live` what that changes, and "
    "deploy it"
)


def run(
    fleet: Fleet,
    previous: Sequence[Cell],
    write: Callable[[Plan], None],
    settings: Settings,
    options: DefragOptions,
) -> None:
    """previous: the cells in the Serve config. write: checks a plan and writes it there.

    Raises ConfigError where that is not the plan of the spec, UnsafeStep, MoveStopped.
    """
    if not previous:
        raise ConfigError("nothing is placed yet: run `modelyard plan` with -o, and deploy it")
    if not options.execute:
        _tell(*_found(fleet, previous, options), options)
        return
    with _platform(fleet, previous, write, settings) as platform:
        mover = Mover(platform, options.pace, lambda line: typer.echo(line, err=True))
        settled = _settled(fleet, previous, platform, mover)
        made, found, ordered = _found(fleet, settled, options)
        _tell(made, found, ordered, options)
        try:
            done = mover.run(ordered, made.cells, made.packing)
        except KeyboardInterrupt:
            typer.echo(
                "broken off: the file is whole, and the same command again finishes or undoes the "
                "move that was under way",
                err=True,
            )
            raise typer.Exit(130) from None
    typer.echo(f"done: {done} batches", err=True)


@contextmanager
def _platform(
    fleet: Fleet, previous: Sequence[Cell], write: Callable[[Plan], None], settings: Settings
) -> Iterator[MovingPlatform]:
    """Raises ConfigError when nothing runs here or there is no key."""
    running = LocalCluster(settings).running()
    if running is None:
        raise ConfigError("nothing is running: deploy the plan first, then move its replicas")
    files = _Files(fleet, make_plan(fleet.spec, fleet.memory, previous), write)
    with AdminClient.from_settings(settings) as admin, connected(running):
        yield MovingPlatform(LiveApps(running), admin, files, previous)


@dataclass(frozen=True, slots=True)
class _Files:
    """Implements moving_platform.Files. base: the plan, but for its cells."""

    fleet: Fleet
    base: Plan
    to_file: Callable[[Plan], None]

    def rendered(self, cells: tuple[Cell, ...], packing: Packing) -> bytes:
        return self.fleet.rendered(replace(self.base, cells=cells, packing=packing))

    def write(self, cells: tuple[Cell, ...], packing: Packing) -> None:
        self.to_file(replace(self.base, cells=cells, packing=packing))


def _settled(
    fleet: Fleet, previous: Sequence[Cell], platform: MovingPlatform, mover: Mover
) -> tuple[Cell, ...]:
    """The cells once a move that was broken off is finished, or undone."""
    asked = fleet_problem(fleet.spec, fleet.memory)
    drained = platform.drained()
    rest = settled(asked, previous, drained, platform.ready())
    made = make_plan(fleet.spec, fleet.memory, rest)
    held = {(cell.app, cell.places): cell.each for cell in rest}
    if any(cell.each > held.get((cell.app, cell.places), 0) for cell in made.cells):
        raise ConfigError(f"{_NOT_THE_PLAN}it lacks what the spec asks for: {_PLAN_FIRST}")
    if drained or _shape(made.cells) != _shape(previous):
        kept = {cell.app for cell in made.cells}
        gone = tuple(cell.app for cell in previous if cell.app not in kept)
        what = ", ".join(gone) or "nothing"
        typer.echo(f"a move was broken off, so {what} is dropped", err=True)
        mover.finish(gone, drained, made.cells, made.packing)
    return made.cells


def _found(
    fleet: Fleet, previous: Sequence[Cell], options: DefragOptions
) -> tuple[Plan, tuple[Move, ...], tuple[Step, ...]]:
    asked = fleet_problem(fleet.spec, fleet.memory)
    made = make_plan(fleet.spec, fleet.memory, previous)
    _require_plan(made, previous)
    most = options.max_moves
    if most is None:
        most = ceil(SHARE_OF_A_PASS * sum(one.replicas for one in made.packing.placed))
    found = moves(
        made.problem,
        made.packing,
        max_moves=most,
        pinned=pinned_of(made.cells) | pinned_areas(made.packing),
    )
    return made, found, steps(asked, made.packing, made.cells, found, at_once=options.at_once)


def _require_plan(made: Plan, cells: Sequence[Cell]) -> None:
    if _shape(made.cells) != _shape(cells):
        raise ConfigError(
            f"{_NOT_THE_PLAN}if a move was broken off, --defrag --execute finishes or undoes it; "
            f"else {_PLAN_FIRST}"
        )


def _shape(cells: Sequence[Cell]) -> frozenset[tuple[str, tuple[str, ...], int]]:
    return frozenset((cell.app, cell.places, cell.each) for cell in cells)


def _tell(
    made: Plan, found: Sequence[Move], ordered: Sequence[Step], options: DefragOptions
) -> None:
    after = applied(made.packing, found)
    if options.as_json:
        typer.echo(json.dumps(_record(made, after, ordered), indent=2))
        return
    typer.echo(_summary(made, found, after))
    for step in ordered:
        if step.kind is StepKind.ADD:
            for move in step.moves:
                count = f"{move.replicas} x " if move.replicas > 1 else ""
                typer.echo(
                    f"  {step.batch + 1}: {count}{move.item}  {move.source} -> {move.target}"
                )
    if found and not options.execute:
        typer.echo("nothing is changed: --execute makes the moves, one batch after the other")


def _summary(made: Plan, found: Sequence[Move], after: Packing) -> str:
    least = made.bound.price
    freed = sorted(made.packing.used - after.used)
    if not found:
        return f"no place can be freed within the moves allowed; in use {_above(made, least)}"
    return (
        f"{replicas_of(found)} replicas move, {len(freed)} places are freed ({', '.join(freed)}): "
        f"{_above(made, least)} -> {_above(replace(made, packing=after), least)}"
    )


def _above(plan: Plan, least: int) -> str:
    cost = price(plan.problem, plan.packing)
    over = f", {100 * (cost / least - 1):.1f} % above the bound" if least else ""
    return f"{cost / 1e6:.2f} per hour{over}"


def _record(made: Plan, after: Packing, ordered: Sequence[Step]) -> dict[str, Any]:
    return {
        "price": price(made.problem, made.packing) / 1e6,
        "price_after": price(made.problem, after) / 1e6,
        "bound": made.bound.price / 1e6,
        "freed": sorted(made.packing.used - after.used),
        "steps": [
            {
                "batch": step.batch + 1,
                "kind": str(step.kind),
                "moves": [asdict(move) for move in step.moves],
                "arrives": dict(step.arrives),
                "drained": sorted(step.drained),
                "apps": [cell.app for cell in step.cells],
            }
            for step in ordered
        ],
    }
