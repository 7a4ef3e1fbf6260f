"""A request's books up to where the pipeline takes them over, over HTTP and by handle alike."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.requests import ClientDisconnect

from modelyard.contract.errors import Internal, RequestError
from modelyard.ingress.charge import CLIENT_GONE
from modelyard.ingress.pipeline import Pipeline
from modelyard.ingress.prepared import Ask
from modelyard.telemetry.request_log import RequestRecord

log = logging.getLogger("modelyard.ingress")


@contextmanager
def opened(pipeline: Pipeline, ask: Ask) -> Iterator[RequestRecord]:
    """Whatever ends a request before it is prepared closes its record. A bug becomes Internal."""
    record = pipeline.books.open_record(ask)
    try:
        yield record
    except RequestError as error:
        pipeline.books.close_record(record, ask.started, error.status, error.code, error.reason)
        raise
    except ClientDisconnect:  # while its body was read
        pipeline.books.close_record(record, ask.started, CLIENT_GONE, "cancelled", "client_gone")
        raise
    except Exception as error:
        log.exception("request %s failed", ask.request_id)
        pipeline.books.close_record(record, ask.started, 500, "internal")
        raise Internal(
            f"an internal error, logged under the request id {ask.request_id}"
        ) from error
    except BaseException:
        pipeline.books.close_record(record, ask.started, CLIENT_GONE, "cancelled", "client_gone")
        raise
