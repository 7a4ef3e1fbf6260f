"""What an ingress tells the board five times a second."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.control.published import Published


@dataclass(frozen=True, slots=True)
class Wish:
    """An ingress asks for replicas of a version (one from zero) for the seconds left."""

    version: str
    replicas: int
    left_s: float


@dataclass(frozen=True, slots=True)
class IngressPost:
    """One ingress process: the table it runs on, its demand, and what it wishes for.

    ingress: the replica's id. table_error: why the last table was refused; empty when it was not.
    in_flight: (version, requests), those that wait among them. waiting and running: (lane, band,
    requests), those that wait for a slot and those that have one. word: control's last word, told
    to a board that holds an earlier one or none: that board, and a control that starts anew with
    it, then know what was said.
    """

    ingress: str
    table_digest: str
    table_valid: bool
    table_error: str = ""
    in_flight: tuple[tuple[str, int], ...] = ()
    waiting: tuple[tuple[str, str, int], ...] = ()
    running: tuple[tuple[str, str, int], ...] = ()
    wishes: tuple[Wish, ...] = ()
    word: Published | None = None
