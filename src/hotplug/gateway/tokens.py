"""Tokens of threads: 256 random bits, shown once, kept as hashes, carried in the header only."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Final

__all__ = ["OWNER", "TOKEN_VARIABLE", "bearer_of", "new_opener_token", "new_thread_id", "new_token", "opener_of"]
__all__ += ["same_hash", "token_hash"]

TOKEN_VARIABLE: Final = "HOTPLUG_THREAD_TOKEN"  # noqa: S105 - a variable's name
"""The environment variable that holds a thread's token for `hotplug serve --thread` and `hotplug thread fork`."""

OWNER: Final = "owner"
"""The id of the owner's own root thread: the caller over stdio without a token. It has none, so none opens it."""

_THREADS: Final = "hpt_"
_OPENERS: Final = "hpo_"
_LONGEST: Final = 512


def new_token() -> str:
    """A new thread's token: `hpt_` and 43 characters of base64url."""
    return _THREADS + secrets.token_urlsafe(32)


def new_opener_token() -> str:
    """A new opener's token: `hpo_` and 43 characters of base64url."""
    return _OPENERS + secrets.token_urlsafe(32)


def new_thread_id() -> str:
    """A new thread's id: `t_` and 16 characters of `a-z 2-7`, 80 random bits."""
    return "t_" + base64.b32encode(secrets.token_bytes(10)).decode().lower()


def token_hash(token: str) -> bytes:
    """The SHA-256 of a token: enough for 256 random bits, which nobody can guess one by one."""
    # More than this can be no token of anybody's; what follows is not worth a hash's time.
    return hashlib.sha256(token[:_LONGEST].encode("utf-8", "surrogatepass")).digest()


def same_hash(known: bytes | None, given: bytes) -> bool:
    """Whether two hashes are the same, in the same time whether they are or not, and whether there is one at all."""
    same = hmac.compare_digest(_NOBODY if known is None else known, given)
    return same and known is not None


_NOBODY: Final = hashlib.sha256(secrets.token_bytes(32)).digest()


def opener_of(openers: Mapping[str, str], token: str) -> str | None:
    """Whose token this is among openers, by the SHA-256 (hex) of theirs; None: nobody's.

    All are compared, so that the time doesn't tell which one was close.
    """
    given = token_hash(token).hex().encode()
    found: str | None = None
    for name, known in openers.items():
        if hmac.compare_digest(known.lower().encode(), given):
            found = name
    return found


def bearer_of(authorization: str | None) -> str | None:
    """The token of an `Authorization` header (RFC 6750, section 2.1); None where it has another scheme or none."""
    scheme, _, token = (authorization or "").partition(" ")
    token = token.strip(" ")
    return token if scheme.lower() == "bearer" and token else None
