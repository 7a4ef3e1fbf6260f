"""Keys: `my_<id>_<secret>`. A file holds the id and the hash; the key itself is shown once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from modelyard.contract.errors import ConfigError

SECRET_BYTES: Final = 32

# An id has no "_", so the first one after it ends it; a secret may hold more of them.
_ID = r"[A-Za-z0-9.-]{1,64}"
_AFTER: Final = re.compile(r"([1-9][0-9]{0,5})([hdw])")
_UNITS: Final = {"h": "hours", "d": "days", "w": "weeks"}
_KEY: Final = re.compile(rf"my_({_ID})_[A-Za-z0-9_-]{{16,128}}")


def hash_key(key: str) -> str:
    """sha256 of the whole key, in hex.

    Plain sha256, not a slow password hash: the secret is 256 random bits, so guessing is hopeless
    anyway, and the ingress hashes once a request.
    """
    return hashlib.sha256(key.encode()).hexdigest()


def key_id(key: str) -> str | None:
    """The id inside a key, or None when the text does not have a key's shape."""
    match = _KEY.fullmatch(key)
    return match.group(1) if match else None


def new_key(identifier: str, random: Callable[[int], str]) -> str:
    """A fresh key. `random(n)` gives URL-safe text made of n random bytes (secrets.token_urlsafe).

    Raises ConfigError for an id that could not be parsed back.
    """
    key = f"my_{identifier}_{random(SECRET_BYTES)}"
    if key_id(key) != identifier:
        raise ConfigError(
            f"{identifier!r} cannot be the id of a key: use 1 to 64 of A-Z a-z 0-9 . and -"
        )
    return key


def expiry_of(text: str, now: datetime) -> datetime:
    """When a key ends: `12h`, `30d`, `8w` from `now`, or a date (its beginning in UTC), or a time.

    Raises ConfigError for anything else, and for what is over already.
    """
    try:
        expires = _expiry(text, now)
    except (ValueError, OverflowError) as error:
        raise ConfigError(f"{text!r} is no expiry: write 30d, or 2027-01-31") from error
    if expires <= now:
        raise ConfigError(f"{text!r} is in the past: write 30d, or a date to come")
    return expires.astimezone(UTC).replace(microsecond=0)


def _expiry(text: str, now: datetime) -> datetime:
    if (match := _AFTER.fullmatch(text)) is not None:
        return now + timedelta(**{_UNITS[match[2]]: int(match[1])})
    given = datetime.fromisoformat(text)
    return given if given.tzinfo is not None else given.replace(tzinfo=UTC)
