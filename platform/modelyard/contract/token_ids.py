"""Token ids that a caller sends in place of text."""

from __future__ import annotations

from typing import Any, Final

# 2048 inputs of 64 tokens, or one of the longest context that is served. Without a bound, a body of
# 4 MiB is two million numbers, which take the ingress over a second to read, check and write.
MAX_TOKEN_IDS: Final = 131_072
_END: Final = 2**31  # larger than any vocabulary, and what an engine's arrays can hold


def is_token_ids(value: Any) -> bool:
    """Whether it is a list of token ids; an empty one is."""
    # type() and not isinstance(): True is an int.
    return isinstance(value, list) and all(type(one) is int and 0 <= one < _END for one in value)


def count_items(value: list[Any]) -> int:
    """The items of a list, those of the lists in it included. Cheap: lengths only."""
    return len(value) + sum(len(one) for one in value if isinstance(one, list))
