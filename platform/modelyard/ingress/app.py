"""The HTTP surface: a FastAPI app over a pipeline. No middleware: each route does what it does."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from modelyard import __version__
from modelyard.contract.errors import (
    Internal,
    MethodNotAllowed,
    NotFound,
    RequestError,
)
from modelyard.contract.headers import request_id_of
from modelyard.contract.operations import Operation
from modelyard.ingress import catalog, feedback_route, health, route_explain
from modelyard.ingress.body import parse_object, read_body, refuse_encoded
from modelyard.ingress.charge import CLIENT_GONE
from modelyard.ingress.disconnect import cancelled_when_gone
from modelyard.ingress.openapi import request_body
from modelyard.ingress.opening import opened
from modelyard.ingress.pipeline import Pipeline
from modelyard.ingress.prepared import Ask
from modelyard.ingress.responses import (
    StreamResponse,
    answer_response,
    error_response,
)

log = logging.getLogger("modelyard.ingress")

ROUTES: Final[tuple[tuple[str, Operation], ...]] = (
    ("/v1/generate", Operation.GENERATE),
    ("/v1/chat/completions", Operation.CHAT),
    ("/v1/completions", Operation.COMPLETIONS),
    ("/v1/responses", Operation.RESPONSES),
    ("/v1/embeddings", Operation.EMBED),
    ("/v1/rerank", Operation.RERANK),
    ("/rerank", Operation.RERANK),
    ("/v2/rerank", Operation.RERANK),
    ("/v1/score", Operation.SCORE),
    ("/score", Operation.SCORE),
    ("/v1/classify", Operation.CLASSIFY),
    ("/classify", Operation.CLASSIFY),
)
# Jina's clients expect the documents back unless they say no; Cohere's v2 API never sends them.
RETURN_DOCUMENTS: Final = {"/v1/rerank": True, "/rerank": True, "/v2/rerank": False}


def build_app(pipeline: Pipeline) -> FastAPI:
    """The app of one ingress process."""
    app = FastAPI(
        title="modelyard",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    for path, operation in ROUTES:
        app.add_api_route(
            path,
            _endpoint(pipeline, path, operation),
            methods=["POST"],
            operation_id=path.strip("/").replace("/", "_"),
            summary=f"{operation}",
            openapi_extra=request_body(operation),
        )
    catalog.add_routes(app, pipeline)
    feedback_route.add_routes(app, pipeline)
    health.add_routes(app, pipeline)
    route_explain.add_routes(app, pipeline)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestError, _request_error)
    return app


def _endpoint(
    pipeline: Pipeline, path: str, operation: Operation
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        started = pipeline.now()
        ask = Ask(
            operation=operation,
            route=path,
            authorization=request.headers.get("authorization"),
            headers=request.headers,
            request_id=request_id_of(request.headers),
            started=started,
        )
        return await answer(pipeline, ask, request)

    return endpoint


async def answer(pipeline: Pipeline, ask: Ask, request: Request) -> Response:
    """One model request, from its headers to its response."""
    try:
        with opened(pipeline, ask) as record:
            caller = await pipeline.authenticate(ask, record)
            refuse_encoded(request.headers.get("content-encoding"))
            raw = await read_body(
                request.stream(), request.headers.get("content-length"), pipeline.max_body_bytes
            )
            body = parse_object(raw, request.headers.get("content-type"))
            if ask.operation is Operation.RERANK and body.get("return_documents") is None:
                body["return_documents"] = RETURN_DOCUMENTS[ask.route]
            prepared = pipeline.prepare(ask, caller, body, record)
        if prepared.work.stream:
            return StreamResponse(pipeline, prepared, ask.operation)
        async with cancelled_when_gone(request.receive):
            item = await pipeline.call(prepared)
        return answer_response(item, prepared)
    except ClientDisconnect:
        return Response(status_code=CLIENT_GONE)
    except RequestError as error:
        return error_response(error, ask.request_id, ask.operation)
    except Exception:
        # The edge of the process: a bug of ours is logged and leaks nothing.
        log.exception("request %s failed", ask.request_id)
        bug = Internal(f"an internal error, logged under the request id {ask.request_id}")
        return error_response(bug, ask.request_id, ask.operation)


async def _http_error(request: Request, error: Exception) -> Response:
    """JSON for what the router refuses."""
    assert isinstance(error, HTTPException)
    path = request.url.path
    mapped: RequestError
    if error.status_code == 405:
        mapped = MethodNotAllowed(f"{request.method} is not a method of {path}")
    elif error.status_code == 404:
        mapped = NotFound(f"there is no route {path}", reason="no_route")
    else:
        mapped = Internal("the request could not be handled")
    response = error_response(mapped, request_id_of(request.headers), _operation_at(path))
    response.headers.update(error.headers or {})
    return response


async def _request_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return error_response(error, request_id_of(request.headers), _operation_at(request.url.path))


def _operation_at(path: str) -> Operation | None:
    return next((operation for route, operation in ROUTES if route == path), None)
