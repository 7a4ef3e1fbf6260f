"""How long a replica may be silent before nobody is there. In every phase it posts each second."""

from __future__ import annotations

from typing import Final

from modelyard.lifecycle.phases import START, Phase

# One that serves: five missed posts, and no request goes there any more.
ALIVE_S: Final = 5.0
# Longer than a machine that swaps or compiles may keep a live replica from posting, and than
# Serve's own health check takes to kill one (10 s): what is silent for so long does not come back.
SILENT_S: Final = 20.0


def is_there(phase: Phase, age_s: float) -> bool:
    """Whether a replica whose last post is so old still is. What failed says why for as long as
    the board keeps it; a start gets longer than a server, since nobody waits for it yet and its
    imports starve the thread that posts."""
    if phase is Phase.FAILED:
        return True
    return age_s < (SILENT_S if phase in START else ALIVE_S)
