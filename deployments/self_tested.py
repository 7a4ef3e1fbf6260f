"""The golden self-test: a replica that fails it never receives a request."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from modelyard.contract.errors import ArtifactError
from modelyard.lifecycle.golden import read_golden
from modelyard.lifecycle.self_test import compare

if TYPE_CHECKING:
    from deployments.shell import Shell

log = logging.getLogger("modelyard.shell")


async def self_tested(shell: Shell) -> None:
    """Ask every golden prompt of the version. Raises ArtifactError with the first that is answered
    otherwise: its name, what was expected and what came."""
    if shell.manifest.warmup.golden_sha256 is None:
        log.warning(
            "%s has no golden prompts: its answers are not tested", shell.manifest.full_name
        )
        return
    golden = await asyncio.to_thread(read_golden, shell.folder)
    if golden.kind != shell.manifest.kind:
        raise ArtifactError(
            f"{shell.folder}: golden.json is of a {golden.kind}, the version is a "
            f"{shell.manifest.kind}: record it again"
        )
    for prompt in golden.prompts:
        mismatch = compare(prompt, await shell.observe(prompt))
        if mismatch is not None:
            raise ArtifactError(str(mismatch))
