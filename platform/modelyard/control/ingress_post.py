"""What an ingress tells the board five times a second."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.control.published import Published


@dataclass(frozen=True, slots=True)
class Wish:
    """An ingress asks for replicas of a version (one from zero) for the seconds left.

    by_control: of a model in a swap area. Control loads it when there is room; scaling alone, which
    knows no areas, does not.
    """

    version: str
    replicas: int
    left_s: float
    by_control: bool = False


@dataclass(frozen=True, slots=True)
class IngressPost:
    """One ingress process: the table it runs on, its demand, and what it wishes for.

    ingress: the replica's id. table_error: why the last table was refused; empty when it was not.
    in_flight: (version, requests), those that wait among them. waiting and running: (lane, band,
    requests), those that wait for a slot and those that have one. word: control's last word, told
    to a board that holds an earlier one or none: that board, and a control that starts anew with
    it, then know what was said. order: of control's word that is in force there; (0, 0) before the
    first.
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
    order: tuple[int, int] = (0, 0)
