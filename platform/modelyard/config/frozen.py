"""What every config model is: frozen and strict; and the names that several of them use."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Alias = Annotated[str, Field(pattern=r"^[A-Za-z0-9._/-]{1,128}$")]
# No "--" in either part: it separates the cell in an app's name.
VersionName = Annotated[
    str, Field(pattern=r"^[a-z0-9]+([._-][a-z0-9]+)*@[0-9A-Za-z]+([._-][0-9A-Za-z]+)*$")
]
TenantName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
Region = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,32}$")]
Tier = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,32}$")]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Role = Literal["invoke", "evaluate", "admin", "scrape"]
Priority = Literal["interactive", "batch", "shadow"]
Arm = Literal["stable", "canary"]


class Frozen(BaseModel):
    """Unknown keys are errors, and nothing changes after parsing."""

    model_config = ConfigDict(frozen=True, extra="forbid")
