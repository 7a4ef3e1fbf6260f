"""Pack: the best answer of the fast path and of the exact path.

Both see types, kinds and counts only (`grouped`). The fast path is the best of several greedy rules
(`heuristics`); the exact path is column generation (`columns`) with diving (`dive`), and ends early
where its bound is met. Names come last (`settle`), and what a cap kept out is added one by one
(`online`); what none of them places, and is small, is tried by an integer program (`by_name`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from placement import prices
from placement.answer import Answer, by_heuristics
from placement.by_name import by_name
from placement.columns import relaxation
from placement.components import components
from placement.dive import best_whole
from placement.grouped import Kind, Type, grouped
from placement.online import add, complete
from placement.problem import Item, Packing, Problem
from placement.room import Room
from placement.settle import settle

_ONE_BY_ONE_UP_TO = 300
"""Replicas; only so few are worth a try: now and then it meets caps that the counts do not see."""


def pack(problem: Problem, *, exact: bool = True) -> Packing:
    """The least price of used places found, ties by their number; the same for the same names,
    whatever their order. Where room is short the higher priority comes first, and `unplaced` says
    what is missing. exact: seconds instead of milliseconds."""
    best = _all_or_most(problem, exact=exact)
    priorities = sorted({item.priority for item in problem.items}, reverse=True)
    if not best.unplaced or len(priorities) == 1:
        return best
    fixed = Packing(())
    higher: tuple[Item, ...] = ()
    for priority in priorities:
        level = tuple(item for item in problem.items if item.priority == priority)
        own = Problem(problem.places, (*higher, *level))
        joint = _all_or_most(own, exact=exact)
        # Together only if that costs no higher priority a place.
        if any(own.item[name].priority > priority for name, _ in joint.unplaced):
            joint = add(own, fixed)
        fixed, higher = joint, _as_placed(own, joint)
    return replace(fixed, unplaced=_without(problem, higher))


def _as_placed(problem: Problem, packing: Packing) -> tuple[Item, ...]:
    """Asking for no more than what is placed: what has no room must not keep those below from
    being packed together with the rest."""
    counts: Counter[str] = Counter()
    for one in packing.placed:
        counts[one.item] += one.replicas
    return tuple(replace(item, replicas=counts[item.name]) for item in problem.items)


def _without(problem: Problem, placed: Sequence[Item]) -> tuple[tuple[str, int], ...]:
    short = ((one.name, problem.item[one.name].replicas - one.replicas) for one in placed)
    return tuple(sorted((name, count) for name, count in short if count > 0))


def price_of(problem: Problem, packing: Packing) -> int:
    """Per hour, of every place used."""
    return sum(problem.place[name].price for name in packing.used)


def _all_or_most(problem: Problem, *, exact: bool) -> Packing:
    """The counts do not see which caps meet at one place; names do, where they are few."""
    packing = _together(problem, exact=exact)
    if packing.unplaced and exact and (found := by_name(problem).packing) is not None:
        return found
    return packing


def _together(problem: Problem, *, exact: bool) -> Packing:
    """All priorities as one."""
    groups = grouped(problem, by_zone=True)
    kinds = _charged(groups.kinds)
    own = components(kinds, groups.types)
    parts = [part.of(kinds, groups.types) for part in own]
    answers = [[by_heuristics(*part) for part in parts]]
    if exact:
        answers.append([_exact(*part, fast) for part, fast in zip(parts, answers[0], strict=True)])
    packings = []
    for answer in answers:
        room = Room(problem)
        pairs = zip(own, answer, strict=True)
        filled = [one for part, found in pairs for one in part.whole(found.filled)]
        settle(room, groups, filled)
        complete(room)
        packings.append(room.packing(", ".join(sorted({part.method for part in answer}))))
    if exact and sum(item.replicas for item in problem.items) <= _ONE_BY_ONE_UP_TO:
        packings.append(add(problem, Packing(())))
    if len(packings) == 1:
        return packings[0]  # its price need not be counted
    return min(packings, key=lambda own: _cost(problem, own))


def _exact(kinds: Sequence[Kind], types: Sequence[Type], fast: Answer) -> Answer:
    """Of one component. First as if there were places enough, which shares its work with the
    bound; with the supply in the program only where that was not good enough."""
    best = fast
    for limited in (False, True):
        relaxed = relaxation(kinds, types, up=True, limited=limited)
        if not limited:
            target = prices.round_up(relaxed.bound, [kind.price for kind in kinds])
        found = best_whole(kinds, types, relaxed.columns, target=target)
        best = min(best, found, key=lambda one: one[:3])
        if not best.shortage and best.price <= target:
            break
    return best


def _charged(kinds: Sequence[Kind]) -> tuple[Kind, ...]:
    """Places without a price are to be few as well: a little, or all of it where none has one."""
    little = max(1, max((kind.price for kind in kinds), default=0) // 1000)
    if all(kind.price > 0 for kind in kinds):
        return tuple(kinds)
    return tuple(kind._replace(price=kind.price + little) for kind in kinds)


def _cost(problem: Problem, packing: Packing) -> tuple[int, int, int]:
    short = sum(replicas for _, replicas in packing.unplaced)
    return short, price_of(problem, packing), len(packing.used)
