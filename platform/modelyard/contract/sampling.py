"""Sampling fields whose size or range an engine checks late, slowly, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from modelyard.contract.errors import InvalidRequest
from modelyard.contract.ranges import check_ranges

MAX_STOPS: Final = 4  # OpenAI's bound, and the engine's
MAX_LIST: Final = 1024
MAX_BIAS: Final = 100
MAX_LOGPROBS: Final = 20


def check_sampling(fields: Mapping[str, Any]) -> None:
    """Raises InvalidRequest naming the field."""
    check_ranges(fields)
    if "stop" in fields:
        _check_stop(fields["stop"])
    if "logit_bias" in fields:
        _check_bias(fields["logit_bias"])
    if "stop_token_ids" in fields:
        _check_stop_token_ids(fields["stop_token_ids"])
    for name in ("logprobs", "top_logprobs"):
        if name in fields:
            _check_logprobs(name, fields[name])
    if fields.get("temperature") == 0 and fields.get("n", 1) != 1:
        raise InvalidRequest(
            "n must be 1 when temperature is 0, because all choices would be the same: raise "
            "temperature",
            param="n",
        )


def _check_stop(stop: Any) -> None:
    many = [stop] if isinstance(stop, str) else stop
    if not isinstance(many, list) or len(many) > MAX_STOPS:
        raise InvalidRequest(
            f"stop must be text or a list of at most {MAX_STOPS} texts", param="stop"
        )
    if not all(isinstance(one, str) and one for one in many):
        raise InvalidRequest("stop must hold texts, and no empty one", param="stop")


def _check_bias(bias: Any) -> None:
    if not isinstance(bias, dict) or len(bias) > MAX_LIST:
        raise InvalidRequest(
            f"logit_bias must be an object of at most {MAX_LIST} token ids", param="logit_bias"
        )
    for token, value in bias.items():
        known = token.isascii() and token.isdigit() and len(token) <= 10
        # type(): True is an int. A comparison with NaN is false, with infinity too.
        if not known or type(value) not in (int, float) or not -MAX_BIAS <= value <= MAX_BIAS:
            raise InvalidRequest(
                f"logit_bias must map token ids to numbers from -{MAX_BIAS} to {MAX_BIAS}",
                param="logit_bias",
            )


def _check_stop_token_ids(ids: Any) -> None:
    # type() and not isinstance(): True is an int.
    good = isinstance(ids, list) and all(type(one) is int and 0 <= one < 2**31 for one in ids)
    if not good or len(ids) > MAX_LIST:
        raise InvalidRequest(
            f"stop_token_ids must be a list of at most {MAX_LIST} token ids", param="stop_token_ids"
        )


def _check_logprobs(name: str, value: Any) -> None:
    """Chat's logprobs is a boolean; the engine checks which route it is on."""
    if isinstance(value, bool) and name == "logprobs":
        return
    if type(value) is not int or not 0 <= value <= MAX_LOGPROBS:
        raise InvalidRequest(f"{name} must be a whole number from 0 to {MAX_LOGPROBS}", param=name)
