"""From the address of an artifact to a folder on this machine."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from modelyard.config.settings import DEFAULT_HOME
from modelyard.contract.errors import ConfigError

_SUPPORTED = "write file:///absolute/path or file://~/path"


def resolve(uri: str, home: Path | None = None) -> Path:
    """The folder that a `file://` address names. Does not look whether it is there.

    `~` is the home of the user this process runs as, and `~/.modelyard` is this installation's
    `home`, so that one config serves wherever MODELYARD_HOME points. Raises ConfigError for any
    other scheme, for a host name and for a relative path.
    """
    try:
        parts = urlsplit(uri)
    except ValueError as error:
        raise ConfigError(f"artifact {uri!r}: not an address: {_SUPPORTED}") from error
    if parts.scheme != "file":
        raise ConfigError(
            f"artifact {uri!r}: only file:// and s3:// addresses are supported: {_SUPPORTED}, or "
            "s3://bucket/prefix/NAME/VERSION"
        )
    if parts.query or parts.fragment:
        raise ConfigError(f"artifact {uri!r}: a path holds no ? or #: {_SUPPORTED}")
    if parts.netloc not in ("", "~"):
        # file://models/x is nearly always a path with a slash too few, read by the rules as a host.
        raise ConfigError(f"artifact {uri!r}: {parts.netloc!r} is read as a host: {_SUPPORTED}")
    path = Path(unquote(parts.netloc + parts.path)).expanduser()
    if "\0" in str(path):
        raise ConfigError(f"artifact {uri!r}: a path holds no %00: {_SUPPORTED}")
    if not path.is_absolute():
        raise ConfigError(f"artifact {uri!r}: the path is not absolute: {_SUPPORTED}")
    default = Path(DEFAULT_HOME).expanduser()
    if home is not None and path.is_relative_to(default):
        return home / path.relative_to(default)
    return path
