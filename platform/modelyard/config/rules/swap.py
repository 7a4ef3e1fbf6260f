"""Rules about swap areas: control can load and unload what is in one."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.config.checked import App, Checked
from modelyard.config.faults import Fault, YamlPath


def swapped_models_are_apps(checked: Checked) -> Iterator[Fault]:
    for path, _, version in _swapped(checked):
        if not _cells(checked, version):
            yield checked.fault(path, "no app of this file has that name: plan again")


def swapped_models_can_be_unloaded(checked: Checked) -> Iterator[Fault]:
    """One cell of 0 or 1 replicas: the area has room for one replica of each."""
    for path, area, version in _swapped(checked):
        cells = _cells(checked, version)
        if len(cells) > 1:
            yield checked.fault(
                path, f"it has {len(cells)} cells, and the area {area} room for one: plan again"
            )
        for app in cells:
            for _, deployment in app.deployments():
                scaling = deployment.autoscaling_config
                bounds = None if scaling is None else (scaling.min_replicas, scaling.max_replicas)
                if bounds != (0, 1):
                    yield checked.fault(
                        path,
                        "models of a swap area are loaded one at a time and unloaded: give "
                        f"{app.options.name} min_replicas 0 and max_replicas 1",
                    )


def swapped_models_are_in_one_area(checked: Checked) -> Iterator[Fault]:
    first: dict[str, str] = {}
    for path, area, version in _swapped(checked):
        if first.setdefault(version, area) != area:
            yield checked.fault(
                path, f"the area {first[version]} has it too: keep it in one of them"
            )


def swapped_models_have_no_rollout(checked: Checked) -> Iterator[Fault]:
    """A rollout keeps replicas of both its versions for as long as it runs."""
    swapped = {version: area for _, area, version in _swapped(checked)}
    for alias, route in checked.all_routes:
        both = [one for one in (route.stable, route.canary) if one in swapped]
        if route.rollout is not None and both:
            yield checked.fault(
                (*checked.table_path, "routes", alias, "rollout"),
                f"it keeps {both[0]} loaded, which is in the swap area {swapped[both[0]]}: plan it "
                "without swappable first",
            )


def _swapped(checked: Checked) -> Iterator[tuple[YamlPath, str, str]]:
    """Path, area and version of each entry."""
    areas = checked.table.swap_areas if checked.table is not None else {}
    for name, area in areas.items():
        for version in area.models:
            path = (*checked.table_path, "swap_areas", name, "models", version)
            yield path, name, version


def _cells(checked: Checked, version: str) -> list[App]:
    return [app for app in checked.models if app.version == version]
