"""A replica's start without Serve, in a process of its own: `start_alone.py FOLDER`.

Prints the phase that it came to, and the cause when it failed there.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from deployments.record import opened
from deployments.self_tested import self_tested
from modelyard.artifacts.contents import verify_contents
from modelyard.artifacts.manifest import read_manifest
from modelyard.artifacts.verify import verify
from modelyard.contract.errors import ModelyardError
from modelyard.lifecycle.phases import Phase


async def start(folder: Path) -> tuple[Phase, str]:
    phase = Phase.VERIFYING
    try:
        manifest = read_manifest(folder)
        verify(folder, manifest)
        verify_contents(folder, manifest)
        shell = opened(folder, manifest)
        phase = Phase.LOADING
        await shell.load()
        phase = Phase.WARMING
        await shell.warm()
        phase = Phase.SELF_TEST
        await self_tested(shell)
    except ModelyardError as error:
        return phase, str(error)
    return Phase.READY, ""


if __name__ == "__main__":
    print(json.dumps(asyncio.run(start(Path(sys.argv[1])))))
