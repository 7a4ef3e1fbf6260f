"""What an ingress does with control for ever: report once a second, take its splits."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from typing import Final

from deployments.control_client import RayControl
from modelyard.config.table import parse_table
from modelyard.contract.errors import ConfigError
from modelyard.control.report import ControlReport
from modelyard.control.usage import UsageLedger
from modelyard.ingress.pipeline import Pipeline

log = logging.getLogger("modelyard.ingress")

REPORT_S: Final = 1.0
FIRST_TRIES: Final = 3
FIRST_EACH_S: Final = 0.4
MORE_AT_ONCE: Final = 3  # reports in a row while control says there is more to be had


class FollowControl:
    """Keeps a pipeline's quota splits fresh, and says in the log when control falls silent."""

    def __init__(self, pipeline: Pipeline, control: RayControl, usage: UsageLedger) -> None:
        self._pipeline = pipeline
        self._control = control
        self._usage = usage
        self._silent = False

    async def first(self) -> None:
        """Before the first request: an ingress without a split would refuse who has a quota.

        Some four seconds at most, so that a control that is away keeps no ingress from serving.
        """
        for _ in range(FIRST_TRIES):
            await self._step_or_log()
            if not self._silent:
                return
            await asyncio.sleep(FIRST_EACH_S)

    async def run(self) -> None:
        """For ever."""
        while True:
            await self._step_or_log()
            await asyncio.sleep(REPORT_S)

    async def _step_or_log(self) -> None:
        try:
            await self.step()
        except Exception:
            # The edge of a background task: without it this ingress would hold no quota.
            log.exception("a report to control failed")

    async def step(self) -> None:
        if self._pipeline.table is None:
            await self._take_last_table()
        for _ in range(MORE_AT_ONCE):
            if not await self._report():
                return

    async def _take_last_table(self) -> None:
        """A new ingress whose own table is bad serves with the last good one."""
        if (record := await self._control.last_table()) is None:
            return
        try:
            table = parse_table(record)
        except ConfigError as error:
            log.error("control's last table is of another release: %s", error)
            return
        refused = self._pipeline.table_error
        self._pipeline.adopt(table)
        self._pipeline.refuse_table(refused or "none was given")

    async def _report(self) -> bool:
        """Whether control has more to say at once."""
        pipeline, gate = self._pipeline, self._pipeline.metering.gate
        yesterday = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
        quota = gate.report(pipeline.now()) if pipeline.table is not None else None
        report = ControlReport(
            pipeline.ingress,
            quota,
            self._usage.report(yesterday),
            pipeline.outcomes.batches(pipeline.now()),
        )
        reply = await self._control.exchange(report)
        if (reply is None) != self._silent:
            self._silent = reply is None
            log.warning("control %s", "does not answer" if self._silent else "answers again")
        if reply is None:
            return False
        pipeline.obey(reply.word)
        pipeline.outcomes.taken(reply.outcomes_taken)
        if reply.quota is None:
            return False
        gate.take(reply.quota, pipeline.now())
        return reply.quota.again
