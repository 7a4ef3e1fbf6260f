"""How often each gate may fail a canary that is as good as the control arm."""

from __future__ import annotations

import math
from typing import Final

# In a whole rollout, whatever it lasts and however often it is looked at. Those that roll back by
# themselves unless told otherwise are at most 1 % together, by Ville's inequality. Errors have
# most: few events must decide there, while slow answers are many.
ALPHA: Final = {
    "errors": 0.003,
    "ttft": 0.0015,
    "e2e": 0.0015,
    "limit_errors": 0.001,
    "limit_ttft": 0.0005,
    "limit_e2e": 0.0005,
    "tokens": 0.0025,
}


def log_threshold(gate: str) -> float:
    """What the logarithm of the gate's evidence must reach."""
    return -math.log(ALPHA[gate])
