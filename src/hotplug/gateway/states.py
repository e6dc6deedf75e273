"""`requestState` on its way through: bound to the thread and the server it came for, opaque otherwise.

A server's state goes back to that server alone, and only with the thread that it was given to: another thread that
got hold of it, or a caller that changed it, is refused before anything is sent.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

__all__ = ["StateSeal"]

_MARK: Final = "hp1."
_MAC: Final = 22


class StateSeal:
    """Seals and opens request states.

    Args:
        key: Of the store, so that a state is good on every replica and after a restart.
    """

    def __init__(self, key: bytes) -> None:
        self._key = hmac.new(key, b"request-state", hashlib.sha256).digest()
        self._keys = hmac.new(key, b"idempotency-key", hashlib.sha256).digest()

    def seal(self, state: str, *, thread: str, server: str, what: str) -> str:
        """The state as the caller gets it.

        Args:
            what: Method and name that it belongs to.
        """
        return f"{_MARK}{self._mac(state, thread, server, what)}.{state}"

    def open(self, sealed: str, *, thread: str, server: str, what: str) -> str | None:
        """The server's own state; None where it wasn't sealed for this."""
        mac, dot, state = sealed.removeprefix(_MARK).partition(".")
        if not sealed.startswith(_MARK) or not dot:
            return None
        if not hmac.compare_digest(mac.encode(), self._mac(state, thread, server, what).encode()):
            return None
        return state

    def derived(self, thread: str, key: bytes) -> str:
        """A key of the gateway's own for a thread's idempotency key: those of two threads never meet at a server."""
        digest = hmac.new(self._keys, thread.encode() + b"\n" + key, hashlib.sha256).digest()
        return f"hg_{base64.urlsafe_b64encode(digest).decode().rstrip('=')}"

    def _mac(self, state: str, thread: str, server: str, what: str) -> str:
        digest = hmac.new(self._key, digestmod=hashlib.sha256)
        for part in (thread, server, what, state):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big") + data)
        return base64.urlsafe_b64encode(digest.digest()).decode()[:_MAC]
