"""The books on requests: opened once, counted item by item, closed once, whatever way they end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from modelyard.contract.envelope import Answer, Failure, Item
from modelyard.contract.errors import Internal, RequestError, from_failure
from modelyard.contract.headers import traceparent_of
from modelyard.ingress.charge import CLIENT_GONE
from modelyard.ingress.prepared import Ask, Prepared
from modelyard.telemetry.request_log import RequestRecord
from modelyard.telemetry.request_observer import RequestObserver

log = logging.getLogger("modelyard.ingress")


class Books:
    """One per ingress process."""

    def __init__(
        self,
        write_log: Callable[[RequestRecord], None],
        now: Callable[[], float],
        settled: Callable[[Prepared], None],
        observer: RequestObserver | None = None,
    ) -> None:
        """settled: told of each prepared request once, before its record is written."""
        self._write_log = write_log
        self._settled = settled
        self._observer = observer
        self._now = now

    def open_record(self, ask: Ask) -> RequestRecord:
        record = _new_record(ask.request_id, ask.route)
        record.traceparent = traceparent_of(ask.headers)
        if self._observer is not None:
            self._observer.opened(record)
        return record

    def close_record(
        self, record: RequestRecord, started: float, status: int, code: str, reason: str = ""
    ) -> None:
        record.ended(status, code, reason)
        self._close(record, started)

    def _close(self, record: RequestRecord, started: float) -> None:
        record.duration_ms = round((self._now() - started) * 1000, 3)
        self._write_log(record)
        if self._observer is not None:
            self._observer.closed(record)

    def settle(self, prepared: Prepared, status: int, code: str, reason: str = "") -> None:
        """Close the books on a request, once, whatever way it ended."""
        if prepared.settled:
            return
        prepared.settled = True
        prepared.record.ended(status, code, reason)
        self._settled(prepared)
        self._close(prepared.record, prepared.started)
        if prepared.taps is not None:
            prepared.taps.ended(prepared)

    def note(self, route: str, request_id: str, purpose: str) -> RequestRecord:
        """The record of what is no caller's request: a line in the log, and in no metric."""
        record = _new_record(request_id, route)
        record.purpose = purpose
        return record

    def write_note(self, record: RequestRecord, started: float) -> None:
        record.duration_ms = round((self._now() - started) * 1000, 3)
        self._write_log(record)

    @contextmanager
    def settling(self, prepared: Prepared) -> Iterator[None]:
        """Whatever leaves the body closes the books, and is a RequestError or a cancellation."""
        try:
            yield
        except RequestError as error:
            self.settle(prepared, error.status, error.code, error.reason)
            raise
        except Exception as error:
            raise self._bug(prepared) from error
        except BaseException:
            self.settle(prepared, CLIENT_GONE, "cancelled", "client_gone")
            raise

    def take(self, prepared: Prepared, answer: Answer) -> Item:
        """Count an item, or raise what a Failure says."""
        record = prepared.record
        if isinstance(answer, Failure):
            error = from_failure(answer)
            if error.status < 500:
                record.refused_by = record.version
            raise error
        if record.ttft_ms is None:
            record.ttft_ms = round((self._now() - prepared.started) * 1000, 3)
            if self._observer is not None:
                prepared.gaps = self._observer.first_item(record)
        if prepared.gaps is not None:
            prepared.gaps.item(answer.output_tokens, self._now())
        record.output_tokens += answer.output_tokens
        if answer.final is not None:
            record.input_tokens = answer.final.input_tokens
            record.output_tokens = answer.final.output_tokens
            record.cached_tokens = answer.final.cached_tokens
            record.finish_reason = answer.final.finish_reason
        if prepared.taps is not None:
            prepared.taps.item(answer)
        return answer

    def _bug(self, prepared: Prepared) -> RequestError:
        """For an exception nobody foresaw: logged here, and nothing of it leaks."""
        request_id = prepared.record.request_id
        log.exception("request %s failed", request_id)
        self.settle(prepared, 500, "internal")
        return Internal(f"an internal error, logged under the request id {request_id}")


def _new_record(request_id: str, route: str) -> RequestRecord:
    ts = datetime.now(UTC).isoformat(timespec="milliseconds")
    return RequestRecord(ts=ts, request_id=request_id, route=route)
