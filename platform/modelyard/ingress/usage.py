"""What one request adds to its tenant's usage."""

from __future__ import annotations

from modelyard.control.usage import Amounts, UsageKey, UsageLedger
from modelyard.telemetry.request_log import RequestRecord


def count(ledger: UsageLedger, record: RequestRecord) -> None:
    """Add a closed record. A caller without a key is nobody's usage, and what has another purpose
    than to answer a caller is none."""
    if not record.tenant or record.purpose:
        return
    # What was never resolved may be any text that a caller wrote: not one row for each.
    model = record.model if record.version else ""
    ok = record.code in ("ok", "cancelled")
    ledger.add(
        UsageKey(record.ts[:10], record.tenant, model, record.version),
        Amounts(
            requests=1,
            refused=0 if ok else 1,
            input_tokens=record.input_tokens,
            output_tokens=record.output_tokens,
            cached_tokens=record.cached_tokens,
        ),
    )
