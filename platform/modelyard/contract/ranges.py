"""The plain numbers and flags of OpenAI's sampling fields, and what each may be.

An engine would coerce them (`"0.5"`, `true`) or find out late; and it checks some not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from modelyard.contract.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Range:
    """`above`: the least itself is not in it."""

    least: float
    most: float | None = None
    whole: bool = False
    above: bool = False

    def holds(self, value: Any) -> bool:
        # type() and not isinstance(): True is an int. A comparison with NaN is false.
        if type(value) not in ((int,) if self.whole else (int, float)):
            return False
        high_enough = value > self.least if self.above else value >= self.least
        low_enough = value < float("inf") if self.most is None else value <= self.most
        return bool(high_enough and low_enough)

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        record: dict[str, Any] = {"type": "integer" if self.whole else "number"}
        record["exclusiveMinimum" if self.above else "minimum"] = self.least
        return record if self.most is None else record | {"maximum": self.most}

    def __str__(self) -> str:
        kind = "whole number" if self.whole else "number"
        start = f"above {self.least}" if self.above else f"from {self.least}"
        return f"a {kind} {start}" + ("" if self.most is None else f" to {self.most}")


NUMBERS: Final[dict[str, Range]] = {
    "temperature": Range(0, 2),
    "top_p": Range(0, 1, above=True),
    "min_p": Range(0, 1),
    "top_k": Range(-1, 2**31 - 1, whole=True),
    "frequency_penalty": Range(-2, 2),
    "presence_penalty": Range(-2, 2),
    "repetition_penalty": Range(0, above=True),
    "min_tokens": Range(0, whole=True),
    "seed": Range(-(2**63), 2**63 - 1, whole=True),
}
FLAGS: Final = frozenset(
    (
        *("echo", "ignore_eos", "include_stop_str_in_output", "parallel_tool_calls"),
        *("skip_special_tokens", "stream"),
    )
)


def check_ranges(fields: Mapping[str, Any]) -> None:
    """Raises InvalidRequest naming the field."""
    for name, allowed in NUMBERS.items():
        if name in fields and not allowed.holds(fields[name]):
            raise InvalidRequest(f"{name} must be {allowed}", param=name)
    for name in FLAGS & fields.keys():
        if not isinstance(fields[name], bool):
            raise InvalidRequest(f"{name} must be true or false", param=name)
