"""From the address of an artifact to a folder on this machine."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from modelyard.contract.errors import ConfigError

_SUPPORTED = "write file:///absolute/path or file://~/path"


def resolve(uri: str) -> Path:
    """The folder that a `file://` address names. Does not look whether it is there.

    `~` is the home of the user this process runs as. Raises ConfigError for any other scheme, for
    a host name and for a relative path.
    """
    parts = urlsplit(uri)
    if parts.scheme != "file":
        raise ConfigError(f"artifact {uri!r}: only file:// addresses are supported: {_SUPPORTED}")
    if parts.query or parts.fragment:
        raise ConfigError(f"artifact {uri!r}: a path holds no ? or #: {_SUPPORTED}")
    if parts.netloc not in ("", "~"):
        # file://models/x is nearly always a path with a slash too few, read by the rules as a host.
        raise ConfigError(f"artifact {uri!r}: {parts.netloc!r} is read as a host: {_SUPPORTED}")
    path = Path(unquote(parts.netloc + parts.path)).expanduser()
    if not path.is_absolute():
        raise ConfigError(f"artifact {uri!r}: the path is not absolute: {_SUPPORTED}")
    return path
