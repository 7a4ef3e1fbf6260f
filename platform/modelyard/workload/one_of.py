"""A mapping with exactly one key, which says what kind of thing its value describes."""

from __future__ import annotations

from typing import Any, Self

from pydantic import model_validator

from modelyard.config.frozen import Frozen


class OneOf(Frozen):
    """`{poisson: {...}}` rather than `{kind: poisson, ...}`.

    A fault's path is then the path in the file: pydantic puts the tags of a union into it.
    """

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            kinds = ", ".join(type(self).model_fields)
            raise ValueError(f"holds {len(given)} kinds, must hold one: give one of {kinds}")
        return self

    @property
    def kind(self) -> str:
        return next(name for name in type(self).model_fields if getattr(self, name) is not None)

    @property
    def value(self) -> Any:
        return getattr(self, self.kind)
