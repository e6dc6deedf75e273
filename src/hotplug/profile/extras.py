"""What extensions add to the parts of profiles: optional fields under `ext["<id>"]`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeVar

from hotplug.profile.fields import Model
from hotplug.profile.shape import TypedShape

__all__ = ["EXTENSION", "EXTRA", "Extra", "extends"]

M = TypeVar("M", bound="type[Model]")

EXTRA: Final = "__hotplug_extra__"
"""The attribute of a model with the part that it adds to."""
EXTENSION: Final = "__hotplug_extension__"
"""The attribute of a model with the id of its extension."""


@dataclass(frozen=True)
class Extra:
    """What an extension adds to an operation's input or an event's payload, under `ext["<id>"]`."""

    part: str
    model: type[Model]

    @cached_property
    def shape(self) -> TypedShape:
        """How it is read."""
        return TypedShape(self.model)


def extends(part: str) -> Any:
    """Optional fields that an extension adds to a part of a profile: decorates a model in the extension's class."""

    def mark(cls: M) -> M:
        setattr(cls, EXTRA, part)
        return cls

    return mark
