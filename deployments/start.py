"""A replica's way from nothing to ready."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from deployments.replica import ServeReplica
from deployments.reporter import Reporter
from deployments.self_tested import self_tested
from deployments.start_guard import StartGuard
from modelyard.artifacts.cache import Held, fetch
from modelyard.artifacts.contents import verify_contents
from modelyard.artifacts.installed import installed
from modelyard.artifacts.manifest import Manifest
from modelyard.artifacts.runtime_fits import require_runtime
from modelyard.artifacts.verify import Damaged, verify
from modelyard.config.model_args import ModelArgs
from modelyard.config.settings import Settings
from modelyard.contract.errors import ArtifactError, ModelyardError, StartError
from modelyard.contract.operations import Kind
from modelyard.lifecycle.cause import Cause
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import Description

if TYPE_CHECKING:
    from deployments.shell import Shell

log = logging.getLogger("modelyard.shell")


async def started(shell: Shell, replica: ServeReplica, reporter: Reporter) -> Held:
    """Run every phase; what is returned keeps the files in the node's cache while it lives.

    Each phase within its budget. Whatever goes wrong, the fleet learns the phase and the cause
    before Serve throws this process away. Raises StartError.
    """
    args: ModelArgs = shell.args
    with StartGuard(reporter, args.start_budgets, shell.kill_engine):
        try:
            settings = Settings.from_environment()
            shell.instrument(settings, replica)
            held = await _artifact(shell.KIND, args, settings, replica, reporter)
            place = replica.place.as_set(settings)
            shell.adopt(held.folder, held.manifest, place, settings.secret())
            reporter.enter(Phase.LOADING)
            await shell.load()
            reporter.enter(Phase.WARMING)
            await shell.warm()
            reporter.enter(Phase.SELF_TEST)
            await self_tested(shell)
        except Exception as error:
            cause = f"{reporter.phase}: {_words(error)}"
            await _tell(reporter, cause)  # Serve kills us at once
            raise StartError(cause) from error
        reporter.enter(Phase.READY)
    return held


async def _tell(reporter: Reporter, cause: str) -> None:
    try:
        # On a thread: looking for a board that has succeeded its own would hold the loop.
        await asyncio.to_thread(reporter.tell, Cause.START_FAILED, cause)
    except Exception as error:  # noqa: BLE001  the cause matters more, and Serve has it too
        log.warning("the board was not told: %r", error)


async def _artifact(
    kind: Kind, args: ModelArgs, settings: Settings, replica: ServeReplica, reporter: Reporter
) -> Held:
    """The version's files, here and right. A damaged copy in the node's cache is fetched again,
    once: a second copy that is damaged comes from a damaged store."""
    held = await _fetched(args, settings, reporter)
    reporter.enter(Phase.VERIFYING)
    _require_named(held, kind, replica.app)
    _require_drain(held.manifest, replica.drain_s)
    try:
        await asyncio.to_thread(verify, held.folder, held.manifest)
    except Damaged as error:
        if not held.discard():
            raise
        held.close()
        log.warning("%s: a damaged copy is fetched again: %s", replica.app, error)
        held = await _fetched(args, settings, reporter)
        reporter.enter(Phase.VERIFYING)
        await asyncio.to_thread(verify, held.folder, held.manifest)
    require_runtime(held.manifest, installed, settings.image)
    await asyncio.to_thread(verify_contents, held.folder, held.manifest)
    return held


async def _fetched(args: ModelArgs, settings: Settings, reporter: Reporter) -> Held:
    def progress(done_bytes: int, all_bytes: int) -> None:
        reporter.fetched = (done_bytes, all_bytes)

    reporter.enter(Phase.FETCHING)
    held = await asyncio.to_thread(
        fetch, args.artifact, settings, digest=args.digest, progress=progress
    )
    reporter.description = Description.of(held.manifest)
    return held


def _require_named(held: Held, kind: Kind, app: str) -> None:
    manifest = held.manifest
    if manifest.kind is not kind:
        raise ArtifactError(
            f"{held.folder}: the artifact is a {manifest.kind}, this deployment serves a {kind}: "
            f"use import_path deployments.{manifest.kind}:app"
        )
    if manifest.full_name != app.partition("--")[0]:
        raise ArtifactError(
            f"{held.folder}: the artifact is {manifest.full_name}, but the app is named {app}: "
            "name the app after the artifact"
        )


def _require_drain(manifest: Manifest, given_s: float) -> None:
    """`modelyard check` says the same, where it can read the version: not in a store."""
    needed_s = manifest.limits.drain_s
    if given_s < needed_s:
        raise StartError(
            f"the deployment's graceful_shutdown_timeout_s is {given_s:g}, and "
            f"{manifest.full_name} needs {needed_s:g} s to finish its answers (limits.drain_s): a "
            f"deploy would cut them, set at least {needed_s:g}"
        )


def _words(error: BaseException) -> str:
    """What went wrong, with its type where the text alone says too little."""
    text = " ".join(str(error).split())
    if isinstance(error, ModelyardError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
