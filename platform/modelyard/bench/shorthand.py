"""What the command's flags mean in one word. All raise ConfigError, one sentence."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from modelyard.config.explain import explain
from modelyard.contract.errors import ConfigError
from modelyard.workload.arrivals import Step
from modelyard.workload.lengths import Lengths

MAX_RATES: Final = 100
_STEP: Final = re.compile(r"([\d.]+)(?:-([\d.]+))?@([\d.]+)")
_NAMED: Final = re.compile(r"([A-Za-z0-9._-]{1,64})=(.+)")

Column = Literal["input_tokens", "output_tokens"]
M = TypeVar("M", bound=BaseModel)


def parse_rates(text: str) -> tuple[float, ...]:
    """`5`, `1,2,4` or `1:10:0.5` (from, to and step). Rising, above 0."""
    try:
        if ":" in text:
            first, last, step = map(float, text.split(":"))
            count = math.floor((last - first) / step + 1e-9) + 1
            rates = tuple(first + index * step for index in range(min(count, MAX_RATES + 1)))
        else:
            rates = tuple(map(float, text.split(",")))
    except (ValueError, ZeroDivisionError, OverflowError):
        rates = ()
    if not rates or not all(0 < rate <= 1e6 for rate in rates) or list(rates) != sorted(set(rates)):
        raise ConfigError(
            f"--rate {text} is no rising list of rates: write 5, or 1,2,4, or 1:10:0.5 for a range"
        )
    if len(rates) > MAX_RATES:
        raise ConfigError(f"--rate {text} is more than {MAX_RATES} rates: take larger steps")
    return rates


def parse_steps(text: str) -> tuple[Step, ...]:
    """`26@120,14@180`: 26/s for 120 s, then 14/s for 180 s; `5-50@60` goes from 5/s to 50/s."""
    steps = []
    for part in text.split(","):
        match = _STEP.fullmatch(part.strip())
        fault = f"--steps {part} is no step: write RATE@SECONDS, or FROM-TO@SECONDS for a ramp"
        if match is None:
            raise ConfigError(fault)
        fields = {"rate_per_s": match[1], "to_per_s": match[2], "for_s": match[3]}
        steps.append(_made(Step, fields, lambda fault=fault: fault))  # type: ignore[misc]
    return tuple(steps)


def parse_lengths(flag: str, text: str, column: Column) -> Lengths:
    """`128`, `uniform:10,200`, `lognormal:MEDIAN,SIGMA[,MAX]` or `trace:FILE`."""
    kind, _, rest = text.partition(":")
    values = rest.split(",")
    record: dict[str, object] = {}
    if not rest:
        record = {"fixed": text}
    elif kind == "uniform" and len(values) == 2:
        record = {"uniform": dict(zip(("low", "high"), values, strict=True))}
    elif kind == "lognormal" and len(values) in (2, 3):
        record = {"lognormal": dict(zip(("median", "sigma", "max"), values, strict=False))}
    elif kind == "trace":
        record = {"trace": {"file": rest, "column": column}}
    return _made(
        Lengths,
        record,
        lambda: (
            f"{flag} {text} is no length: write 128, uniform:10,200, lognormal:120,0.8 "
            "or trace:FILE"
        ),
    )


def parse_keys(texts: Sequence[str]) -> dict[str, str]:
    """`KEY` or `TENANT=KEY`; `@FILE` in place of a key reads it. By tenant, "" without one."""
    keys: dict[str, str] = {}
    for text in texts:
        named = _NAMED.fullmatch(text)
        tenant, key = (named[1], named[2]) if named else ("", text)
        if tenant in keys:
            raise ConfigError(f"--api-key is given twice for {tenant or 'no tenant'}: give one")
        if key.startswith("@"):
            key = _read_key(Path(key[1:]))
        if not key.isascii() or not key.isprintable() or not key.strip():
            raise ConfigError(f"--api-key for {tenant or 'no tenant'} is no printable text")
        keys[tenant] = key
    return keys


def _read_key(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise ConfigError(f"--api-key @{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"--api-key @{path}: holds no ASCII text: give a file of one key"
        ) from error


def _made(model: type[M], record: object, fault: Callable[[], str]) -> M:
    try:
        return model.model_validate(record)
    except ValidationError as error:
        why = "; ".join(problem.message for problem in explain(error, model, record))
        raise ConfigError(f"{fault()} ({why})") from error
