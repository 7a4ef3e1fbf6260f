"""POST /v1/feedback."""

from __future__ import annotations

import logging
import time
from typing import Final

from fastapi import FastAPI, Request, Response
from starlette.requests import ClientDisconnect

from modelyard.contract.errors import Internal, InvalidRequest, NotFound, RequestError
from modelyard.contract.headers import IGNORED_FIELDS, listed, request_id_of
from modelyard.contract.validate import validated
from modelyard.ingress.body import parse_object, read_body, refuse_encoded
from modelyard.ingress.charge import CLIENT_GONE
from modelyard.ingress.feedback import NOT_COUNTED, Feedback, judgement_of, plan_of, why_not
from modelyard.ingress.feedback_rate import FeedbackRate
from modelyard.ingress.openapi import feedback_body
from modelyard.ingress.pipeline import Pipeline
from modelyard.ingress.responses import error_response, json_response
from modelyard.telemetry.request_log import RequestRecord

log = logging.getLogger("modelyard.ingress")

PATH: Final = "/v1/feedback"
MAX_BODY_BYTES: Final = 16 * 1024


def add_routes(app: FastAPI, pipeline: Pipeline) -> None:
    rate = FeedbackRate()

    @app.post(
        PATH,
        operation_id="v1_feedback",
        summary="What a user thought of an answer",
        openapi_extra=feedback_body(),
    )
    async def feedback(request: Request) -> Response:
        """It costs no quota, and is no request of a model: usage and metrics do not know it."""
        started, request_id = pipeline.now(), request_id_of(request.headers)
        record = pipeline.books.note(PATH, request_id, "feedback")
        # Unless it ends otherwise: a cancellation passes by what is caught here.
        record.ended(CLIENT_GONE, "cancelled", "client_gone")
        try:
            return await _answer(request, pipeline, record, rate)
        except ClientDisconnect:
            return Response(status_code=CLIENT_GONE)
        except RequestError as error:
            record.ended(error.status, error.code, error.reason)
            return error_response(error, request_id, None)
        except Exception:
            # The edge of the process: a bug of ours is logged and leaks nothing.
            log.exception("request %s failed", request_id)
            record.ended(500, "internal", "")
            bug = Internal(f"an internal error, logged under the request id {request_id}")
            return error_response(bug, request_id, None)
        finally:
            pipeline.books.write_note(record, started)


async def _answer(
    request: Request, pipeline: Pipeline, record: RequestRecord, rate: FeedbackRate
) -> Response:
    caller = await pipeline.admit(request.headers.get("authorization"), record)
    # Before anything is read: a flood of wrong words costs as much as one of right ones.
    rate.count(caller.claim.tenant, pipeline.now())
    refuse_encoded(request.headers.get("content-encoding"))
    most = min(pipeline.max_body_bytes, MAX_BODY_BYTES)
    raw = await read_body(request.stream(), request.headers.get("content-length"), most)
    body = parse_object(raw, request.headers.get("content-type"))
    given = {name: value for name, value in body.items() if value is not None}
    why = _take(validated(Feedback, given), caller.claim.tenant, pipeline, record)
    record.ended(200, "ok", why)
    told = {"counted": False, "why": NOT_COUNTED[why]} if why else {"counted": True}
    ignored = listed(tuple(name for name in given if name not in Feedback.model_fields))
    headers = {IGNORED_FIELDS: ignored} if ignored else None
    return json_response(told, record.request_id, headers=headers)


def _take(word: Feedback, tenant: str, pipeline: Pipeline, record: RequestRecord) -> str:
    """Why it does not count, "" where it does. Raises NotFound: forged or another tenant's, which
    of both a stranger is not told."""
    try:
        answer = pipeline.answer_of(word.id, tenant)
    except InvalidRequest as error:
        raise NotFound(
            "no answer to this tenant has this id: send the id of one that it got", param="id"
        ) from error
    record.version, record.arm, record.rollout = answer.version, answer.arm, answer.rollout
    record.answer_id, record.conversation = word.id, answer.conversation
    table = pipeline.the_table()
    why = why_not(answer, table, pipeline.router.steering, time.time())
    plan = plan_of(answer.rollout, table)
    if why or plan is None:
        return why
    return "" if pipeline.outcomes.judge(judgement_of(word, answer, plan)) else "crowded"
