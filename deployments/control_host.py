"""Control's way to Ray: claims, the tick of each second, the board and the ingresses."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from ray import serve

from cluster.board import Board
from deployments.broadcast import ask_all
from modelyard.config.settings import Settings
from modelyard.contract.envelope import Failure
from modelyard.contract.errors import Forbidden, Internal, RequestError
from modelyard.control.client import INGRESS_ROLE, ingress_token
from modelyard.control.journal import Journal
from modelyard.control.open_store import open_store
from modelyard.control.published import Published
from modelyard.control.reading import Reading
from modelyard.control.report import ControlReply, ControlReport
from modelyard.control.service import ControlService
from modelyard.control.verbs import Command
from modelyard.quota.figures import Key
from modelyard.quota.messages import HolderReport, SplitReply
from modelyard.telemetry.exposition import Scrape
from modelyard.telemetry.process_metrics import ProcessMetrics
from modelyard.telemetry.rollout_metrics import RolloutMetrics
from modelyard.telemetry.swap_metrics import SwapMetrics
from modelyard.tenancy.claim import verify

log = logging.getLogger("modelyard.control")

T = TypeVar("T")

TICK_S: Final = 1.0
BOARD_WAIT_S: Final = 1.0
START_TRIES: Final = 5  # to read the board's mirror before it is taken for silent
SURRENDER_WAIT_S: Final = 0.08
WARM_UP_S: Final = 2.0


class ControlHost:
    """Runs a ControlService in a Serve replica. Its calls answer a Failure, and raise nothing."""

    def __init__(self, state_path: str) -> None:
        settings = Settings.from_environment()
        self._secret = settings.secret()
        context = serve.get_replica_context()
        self._metrics = ProcessMetrics(context.app_name, context.replica_id.unique_id, self._secret)
        self._token = ingress_token(self._secret)
        self._board = Board()
        self._ingress: Any = None
        journal = Journal(open_store(state_path, settings.home))
        self._service = ControlService(journal, self._publish)
        self._metrics.add(RolloutMetrics(lambda: self._service.rollouts.shown))
        self._metrics.add(SwapMetrics(lambda: self._service.swaps.shown))

    async def start(self) -> None:
        """Take the epoch. Raises what ControlService.start does: Serve then tries again."""
        await self._service.start(await self._mirror())
        self._ticker = asyncio.create_task(self._tick_for_ever())

    def warm_up(self) -> None:
        """A handle learns its replicas at its first call, which takes longer than a recall may."""
        self._warming = asyncio.create_task(self._reports({}, (), WARM_UP_S))

    def adopt(self, table: Any) -> None:
        self._service.adopt(table)

    def check_health(self) -> None:
        """Raises when this process must be replaced: succeeded by another, or silent."""
        if self._service.fenced:
            raise RuntimeError("a later control has taken over: this one has stopped")
        if self._ticker.done():
            raise RuntimeError("control has stopped talking to the board")

    async def admin(
        self, token: str, verb: str, args: dict[str, Any], request: str
    ) -> dict[str, Any] | Failure:
        async def do(author: str) -> dict[str, Any]:
            return await self._service.admin(Command(verb, args, author, request))

        return await self._for(token, "admin", do)

    async def exchange(self, token: str, report: ControlReport) -> ControlReply | Failure:
        async def do(_: str) -> ControlReply:
            return await self._service.exchange(report)

        return await self._for(token, INGRESS_ROLE, do)

    async def recall(self, token: str, need: HolderReport) -> SplitReply | Failure | None:
        async def do(_: str) -> SplitReply | None:
            return await self._service.recall(need, self._surrender)

        return await self._for(token, INGRESS_ROLE, do)

    async def last_table(self, token: str) -> dict[str, Any] | Failure | None:
        async def do(_: str) -> dict[str, Any] | None:
            record: dict[str, Any] | None = self._service.tables.record
            return record

        return await self._for(token, INGRESS_ROLE, do)

    async def scrape(self, token: str) -> Scrape | Failure:
        return await self._metrics.scrape(token)

    async def _for(self, token: str, role: str, do: Callable[[str], Awaitable[T]]) -> T | Failure:
        """Do it, given the caller's key id, if its claim has the role."""
        try:
            claim = verify(token, self._secret)
            if role not in claim.roles:
                raise Forbidden(f"control wants a claim with the role {role}", reason="role")
            return await do(claim.key_id)
        except RequestError as error:
            return error.failure()
        except Exception:
            # The edge of the process: a bug is logged and leaks nothing.
            log.exception("a call failed")
            return Internal("an internal error of control, in its log").failure()

    async def _tick_for_ever(self) -> None:
        while True:
            try:
                await self._service.tick(await self._reading())
            except Exception:
                # The edge of a background task: the next second is another chance.
                log.exception("a tick failed")
            await asyncio.sleep(TICK_S)

    async def _mirror(self) -> Published | None:
        for _ in range(START_TRIES):
            reading = await self._reading()
            if reading is not None:
                return reading.published
            await asyncio.sleep(BOARD_WAIT_S)
        log.error("the board does not answer: what is in the store counts")
        return None

    async def _reading(self) -> Reading | None:
        try:
            async with asyncio.timeout(BOARD_WAIT_S):
                return await self._board.read_all()
        except Exception as error:  # noqa: BLE001  the edge to the board, of whatever release
            log.warning("the board does not answer: %r", error)
            return None

    async def _publish(self, word: Published) -> Published:
        async with asyncio.timeout(BOARD_WAIT_S):
            return await self._board.publish(word)

    async def _surrender(
        self, replies: Mapping[str, SplitReply], wanted: tuple[Key, ...]
    ) -> Iterable[HolderReport]:
        return await self._reports(replies, wanted, SURRENDER_WAIT_S)

    async def _reports(
        self, replies: Mapping[str, SplitReply], wanted: tuple[Key, ...], timeout_s: float
    ) -> list[HolderReport]:
        if self._ingress is None:
            self._ingress = serve.get_deployment_handle(
                "Ingress", app_name="ingress", _check_exists=False
            )
        answers = await ask_all(
            self._ingress,
            "surrender",
            self._token,
            dict(replies),
            wanted,
            timeout_s=timeout_s,
        )
        return [answer for answer in answers.given if isinstance(answer, HolderReport)]
