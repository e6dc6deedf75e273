"""How a renewal can end beside a new token."""

from __future__ import annotations

__all__ = ["RenewalFailed", "RenewalRefused"]


class RenewalRefused(Exception):
    """The authorization server doesn't take what renews the login: a person has to log in again."""


class RenewalFailed(Exception):
    """No answer that decides it: worth another try later."""
