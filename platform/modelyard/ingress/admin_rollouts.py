"""`/admin/rollouts*`: what a rollout does, why, and the verbs on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from fastapi import FastAPI, Request, Response

from modelyard.contract.validate import validated
from modelyard.control.arguments import (
    Arguments,
    Judgements,
    JudgementsBody,
    OfRollout,
    OnRollout,
    RolloutBody,
)
from modelyard.control.rollout_verbs import ROLLOUT_VERBS
from modelyard.ingress.admin_door import AdminDoor, body_of

MAX_JUDGEMENTS_BYTES: Final = 512 * 1024

Handler = Callable[[Request, str], Awaitable[Response]]


def add_routes(app: FastAPI, door: AdminDoor) -> None:
    path = "/admin/rollouts/{rollout}"
    app.get("/admin/rollouts", summary="Every rollout, side by side")(_all(door))
    app.get(path, summary="One rollout")(_question(door, "rollout"))
    app.get(path + "/history", summary="What was decided, and from what")(
        _question(door, "rollout_history")
    )
    for verb, word in ROLLOUT_VERBS.items():
        app.post(f"{path}/{word}", summary=f"{word} a rollout".capitalize())(_verb(door, verb))
    app.post(path + "/judgements", summary="Judgements of a golden set")(_judge(door))


def _all(door: AdminDoor) -> Callable[[Request], Awaitable[Response]]:
    async def rollouts(request: Request) -> Response:
        token = door.token(request)
        validated(Arguments, dict(request.query_params))
        return await door.ask(request, token, "rollouts", {})

    return rollouts


def _question(door: AdminDoor, verb: str) -> Handler:
    async def asked(request: Request, rollout: str) -> Response:
        token = door.token(request)
        validated(Arguments, dict(request.query_params))
        return await door.do(request, token, verb, OfRollout, {"rollout": rollout})

    return asked


def _verb(door: AdminDoor, verb: str) -> Handler:
    async def done(request: Request, rollout: str) -> Response:
        token = door.token(request)
        args = await body_of(request, RolloutBody) | {"rollout": rollout}
        return await door.do(request, token, verb, OnRollout, args)

    return done


def _judge(door: AdminDoor) -> Handler:
    async def judged(request: Request, rollout: str) -> Response:
        token = door.token(request)
        body = await body_of(request, JudgementsBody, max_bytes=MAX_JUDGEMENTS_BYTES)
        return await door.do(
            request, token, "judge_rollout", Judgements, body | {"rollout": rollout}
        )

    return judged
