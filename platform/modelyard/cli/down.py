"""`modelyard down`: stop what `modelyard up` started, and nothing else."""

from __future__ import annotations

import typer

from cluster.local import LocalCluster
from modelyard.config.settings import Settings


def down() -> None:
    """Stop the local platform."""
    cluster = LocalCluster(Settings.from_environment())
    with cluster.exclusive():
        stopped = cluster.stop()
    typer.echo(f"stopped {stopped} processes" if stopped else "nothing is running")
