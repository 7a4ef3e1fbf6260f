"""Rules about control: one, alone, on a store that is still there tomorrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from modelyard.config.checked import App, Checked
from modelyard.config.faults import Fault
from modelyard.config.model_args import ControlArgs

NAME: Final = "control"
_LOST_AT_A_RESTART: Final = ("/tmp", "/var/tmp", "/dev", "/run", "/proc", "/sys")


def there_is_one_control(checked: Checked) -> Iterator[Fault]:
    controls = _controls(checked)
    table = checked.table
    if not controls and table is not None:
        rollouts = any(route.rollout for route in table.routes.values())
        needs = "quotas" if table.quotas else "rollouts" if rollouts else None
        if needs is not None:
            yield checked.fault(
                ("applications",),
                f"the table has {needs}, which need control: add an app with "
                "`import_path: deployments.control:app`",
            )
    for app in controls[1:]:
        yield checked.fault(app.path, "a second control app, and control is single: remove it")
    for app in controls:
        if app.options.name != NAME:
            yield checked.fault(
                (*app.path, "name"), f"the ingresses look for control there: write `name: {NAME}`"
            )


def control_has_one_replica(checked: Checked) -> Iterator[Fault]:
    """Two would take each other's epoch without end."""
    for app in _controls(checked):
        for path, deployment in app.deployments():
            if deployment.autoscaling_config is not None:
                yield checked.fault(
                    (*path, "autoscaling_config"), "control is single: write `num_replicas: 1`"
                )
            elif deployment.num_replicas not in (None, 1):
                yield checked.fault((*path, "num_replicas"), "control is single: write 1")
            if deployment.max_surge_percent:
                yield checked.fault(
                    (*path, "max_surge_percent"),
                    "control must stop before its successor starts: remove it",
                )


def control_has_the_ingress_table(checked: Checked) -> Iterator[Fault]:
    tables = [
        deployment.user_config
        for app in checked.apps
        if app.is_ingress
        for _, deployment in app.deployments()
        if deployment.user_config is not None  # else that is the fault, and told once
    ]
    for app in _controls(checked):
        for path, deployment in app.deployments():
            if tables and deployment.user_config != tables[0]:
                yield checked.fault(
                    (*path, "user_config"),
                    "must be the ingress's table: write `&table` there and `*table` here",
                )


def control_state_is_kept(checked: Checked) -> Iterator[Fault]:
    for app in _controls(checked):
        path = app.args.state_path if isinstance(app.args, ControlArgs) else ""
        for folder in _LOST_AT_A_RESTART:
            if PurePosixPath(path).is_relative_to(folder):
                yield checked.fault(
                    (*app.path, "args", "state_path"),
                    f"what is under {folder} is lost when the machine restarts: give a path on a "
                    "disk, or s3://bucket/prefix",
                )


def _controls(checked: Checked) -> list[App]:
    return [app for app in checked.apps if app.is_control]
