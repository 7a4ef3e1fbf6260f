"""Areas of device memory that models take in turn."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from modelyard.config.frozen import Frozen, VersionName

# The value of a node's label `modelyard/place`, so within what Ray takes as one.
PlaceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$")]
Gigabytes = Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)]


class SwapArea(Frozen):
    """Memory of one place, of which each model takes its part while it is loaded.

    memory_gb: in 1e9 bytes. models: what each version needs of it.
    """

    memory_gb: Gigabytes
    models: dict[VersionName, Gigabytes] = Field(min_length=1)

    @model_validator(mode="after")
    def _each_fits(self) -> Self:
        for version, memory_gb in self.models.items():
            if memory_gb > self.memory_gb:
                raise ValueError(
                    f"{version} needs {memory_gb:g} GB of an area of {self.memory_gb:g}: plan again"
                )
        return self
