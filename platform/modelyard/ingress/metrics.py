"""GET /metrics: every process of the platform through one address, for keys with role scrape."""

from __future__ import annotations

from typing import Protocol

from fastapi import FastAPI, Request, Response

from modelyard.config.table import Table
from modelyard.contract.errors import RequestError
from modelyard.contract.headers import REQUEST_ID, request_id_of
from modelyard.ingress.pipeline import Pipeline
from modelyard.ingress.responses import error_response
from modelyard.telemetry.exposition import CONTENT_TYPE


class Scraper(Protocol):
    """Asks every process. Ray stands behind it in production."""

    async def scrape(self, token: str, table: Table | None) -> str:
        """All families of all processes. token: a signed claim with the role scrape. Raises
        nothing for a process that does not answer."""
        ...


def add_routes(app: FastAPI, pipeline: Pipeline, scraper: Scraper) -> None:
    @app.get("/metrics", summary="Metrics of the whole platform, in Prometheus's text format")
    async def metrics(request: Request) -> Response:
        request_id = request_id_of(request.headers)
        try:
            caller = pipeline.require_key(request.headers.get("authorization"), "scrape")
        except RequestError as error:
            return error_response(error, request_id, None)
        text = await scraper.scrape(caller.token, pipeline.table)
        headers = {REQUEST_ID: request_id, "Content-Type": CONTENT_TYPE}
        return Response(text, headers=headers)
