"""The last good table: what a new ingress starts on when the file it was given is bad."""

from __future__ import annotations

import json
from typing import Any

from modelyard.config.table import Table, parse_table
from modelyard.contract.errors import ConfigError


class LastTable:
    """One in control. `error` says why the latest table was refused, and is empty when it was not.

    The record is kept and not the model, because the ingress parses it with its own release.
    """

    def __init__(self) -> None:
        self.table: Table | None = None
        self.record: Any = None
        self.error = ""

    @property
    def digest(self) -> str:
        return "" if self.table is None else self.table.digest()

    def offer(self, record: Any) -> bool:
        """Take a table, or say why not. True when the last good one is now another."""
        try:
            table = parse_table(record)
        except ConfigError as error:
            self.error = str(error)
            return False
        self.error = ""
        changed = self.table is None or table.digest() != self.table.digest()
        self.table, self.record = table, record
        return changed

    def encode(self) -> bytes:
        return json.dumps(self.record).encode()

    def restore(self, data: bytes) -> None:
        """As it was kept, unless a good one has come since. A release may refuse an older one's."""
        if self.table is None:
            error = self.error
            self.offer(json.loads(data))
            self.error = error or self.error
