"""Who should have answered a scrape, and did not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from modelyard.contract.operations import DEPLOYMENT_OF
from modelyard.control.reading import Reading
from modelyard.lifecycle.silence import ALIVE_S
from modelyard.routing.pool import Cell

Process = tuple[str, str]  # app, replica


def model_cells(reading: Reading) -> frozenset[Cell]:
    """Every model deployment that the board has heard of."""
    return frozenset(
        Cell(post.report.app, DEPLOYMENT_OF[post.report.description.kind])
        for post in reading.posts
        if post.report.description is not None
    )


def unheard(
    reading: Reading, ingress_app: str, answered: Set[Process], silent: Mapping[str, int]
) -> Iterator[Process]:
    """Those that the board has just heard of, and as many more as Serve called in vain.

    silent: by app, how many replicas were called and did not answer. A paused process goes silent
    on the board too, while Serve still counts on it.
    """
    for app, ages in _ages(reading, ingress_app).items():
        absent = [(age_s, replica) for replica, age_s in ages if (app, replica) not in answered]
        for place, (age_s, replica) in enumerate(sorted(absent)):
            if age_s < ALIVE_S or place < silent.get(app, 0):
                yield app, replica


def _ages(reading: Reading, ingress_app: str) -> dict[str, list[tuple[str, float]]]:
    """By app, each replica that can answer and the age of its last post."""
    found = {ingress_app: [(entry.post.ingress, entry.age_s) for entry in reading.ingresses]}
    for post in reading.posts:
        if post.report.ready:
            found.setdefault(post.report.app, []).append((post.report.replica, post.age_s))
    return found
