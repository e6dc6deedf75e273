"""What an implementation may say of itself."""

from __future__ import annotations

from hotplug.evidence.noun import Noun
from hotplug.evidence.vocabulary import Profile, Text, Words

__all__ = ["Implementation"]


class Implementation(Noun):
    """An entry of the registry of implementations.

    Args:
        claims: The profile that it claims.
    """

    name: Text
    version: Text
    platform: Text
    claims: Profile
    homepage: Words | None = None
