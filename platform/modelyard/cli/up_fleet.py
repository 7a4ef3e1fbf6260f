"""What `modelyard up` does with a fleet spec: its machines emulated, its models planned."""

from __future__ import annotations

from pathlib import Path

from cluster.emulated import EmulatedFleet, emulated_fleet
from modelyard.config.document import load_document
from modelyard.config.fleet_file import is_fleet, read_fleet
from modelyard.config.settings import Settings
from modelyard.contract.errors import ConfigError


def is_fleet_spec(path: Path) -> bool:
    return path.is_file() and is_fleet(load_document(path))


def fleet_at(path: Path) -> EmulatedFleet:
    """The machines of a fleet spec. Raises ConfigError with every fault of its fields."""
    if not path.is_file():
        raise ConfigError(f"{path}: no such file: check the path")
    return emulated_fleet(read_fleet(path).spec)


def planned_config(path: Path, settings: Settings) -> Path:
    """The Serve config of a fleet spec, over the one of the last time: what still fits stays.

    Raises ConfigError with every fault, Infeasible where not all has a place.
    """
    # Here, because the solver behind it takes a second to import, and few commands plan.
    from modelyard.cli.plan_check import load_fleet
    from modelyard.cli.plan_file import previous_cells, write_serve
    from placement.planned import make_plan

    fleet = load_fleet(path, settings)
    target = settings.run / f"{path.name.removesuffix('.yaml').removesuffix('.fleet')}.serve.yaml"
    target.parent.mkdir(parents=True, exist_ok=True)
    plan = make_plan(fleet.spec, fleet.memory, previous_cells(target))
    write_serve(fleet, plan, target)
    return target


def require_one_proxy(config: Path, fleet: EmulatedFleet) -> None:
    """Raises ConfigError where each Ray node would have a proxy: they share one machine's ports."""
    if fleet.nodes and load_document(config).root.get("proxy_location") != "HeadOnly":
        raise ConfigError(
            f"{config}: proxy_location must be HeadOnly on an emulated fleet, whose nodes share "
            "this machine's ports: set it, in the fleet spec where the config comes of one"
        )
