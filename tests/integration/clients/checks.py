"""Named checks of one client: each runs once, and says as JSON what it saw or what it raised."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from typing import Any

URL = os.environ["MODELYARD_URL"]
KEY = os.environ["MODELYARD_API_KEY"]
QUESTION = "What is the capital of France?"
LONG_STORY = "Tell me a very long story about a dog."
PASSAGES = [
    "Parcels leave our warehouse on weekdays before noon.",
    "Refunds for duplicate charges are paid within five working days.",
]

Check = Callable[[], Any]
_checks: list[Check] = []


def check(run: Check) -> Check:
    """Register a check; its return value is what it saw."""
    _checks.append(run)
    return run


def main() -> None:
    """Run every check and print one JSON object a line: {"check": name, "saw": value}."""
    for run in _checks:
        line: dict[str, Any] = {"check": run.__name__}
        try:
            line["saw"] = run()
        except Exception as error:
            # The edge of the process: one client's surprise must not hide the other checks.
            logging.exception("%s raised", run.__name__)
            line["raised"] = f"{type(error).__name__}: {error}"
        print(json.dumps(line), flush=True)
