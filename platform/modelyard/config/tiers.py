"""What a tenant's tier is worth when not everybody can be served at once."""

from __future__ import annotations

from pydantic import Field

from modelyard.config.frozen import Frozen


class TierSettings(Frozen):
    """weight: of each tenant of the tier in its band of the queue, against others' weights."""

    weight: float = Field(default=1.0, ge=0.01, le=1000, allow_inf_nan=False)
