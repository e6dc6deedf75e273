"""What a journey's document is made of: closed models, in which a member that isn't known is an error."""

from __future__ import annotations

from pydantic import ConfigDict

from hotplug.profile import Model

__all__ = ["Strict"]


class Strict(Model):
    """A part of a document; a member that it doesn't know is refused."""

    model_config = ConfigDict(extra="forbid")
