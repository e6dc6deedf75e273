"""Durable refs: a handle under a keyed hash, so that a forged or foreign one is found out before anything is sent."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from hotplug.errors import NotFound

__all__ = ["Seal", "Seals"]

_KEPT = 1024
"""Refs, and handles, that are remembered with what they stand for."""
_PRINCIPALS = 256
"""Principals whose seals are kept: one costs little to make again."""

_MAC_BYTES = 12
"""96 bits: forging one means guessing it against a server that answers `not_found` each time."""


class Seal:
    """Seals handles of one server for one principal.

    A sealed ref is `<handle in base64url>.<mac>`; the mac covers kind, server, principal and handle.
    Volatile refs are short and live only in the caller's own instance: they pass as they are.

    Args:
        key: The store's sealing key.
        server: What the handles belong to: stable over restarts, different for each server.
        principal: Who the refs are minted for.
    """

    __slots__ = ("_base", "_opened", "_sealed")

    def __init__(self, key: bytes, server: str, principal: str) -> None:
        self._base = hmac.new(key, _measured(server) + _measured(principal), hashlib.sha256)
        self._sealed: dict[tuple[str, str], str] = {}
        self._opened: dict[tuple[str, str], str] = {}

    def seal(self, kind: str, handle: str, *, volatile: bool = False) -> str:
        """The ref that callers see."""
        if volatile:
            return str(handle)
        found = self._sealed.get((kind, handle))
        if found is None:
            encoded = handle.encode("utf-8", "surrogatepass")
            found = f"{_text(encoded)}.{self._mac(kind, encoded)}"
            _keep(self._sealed, (kind, str(handle)), found)
        return found

    def unseal(self, kind: str, ref: str, *, volatile: bool = False) -> str:
        """The handle of a ref.

        Raises:
            NotFound: It isn't one of this server's, of this kind, for this principal.
        """
        if volatile:
            return ref
        known = self._opened.get((kind, ref))
        if known is not None:
            return known
        text, _, mac = ref.rpartition(".")
        try:
            encoded = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
            handle = encoded.decode("utf-8", "surrogatepass")
        except (binascii.Error, ValueError):
            raise _foreign(kind, ref) from None
        if not handle or _text(encoded) != text or not hmac.compare_digest(self._mac(kind, encoded), mac):
            raise _foreign(kind, ref)
        _keep(self._opened, (kind, str(ref)), handle)
        return handle

    def _mac(self, kind: str, handle: bytes) -> str:
        code = self._base.copy()
        code.update(_measured(kind) + handle)
        return _text(code.digest()[:_MAC_BYTES])


S = TypeVar("S", bound=Seal)


class Seals(Generic[S]):
    """The seals of those who called last.

    Args:
        make: Makes one for a principal.
    """

    def __init__(self, make: Callable[[str], S]) -> None:
        self._make = make
        self._kept: OrderedDict[str, S] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, principal: str) -> S:
        """The seal of a principal."""
        found = self._kept.get(principal)
        if found is None:
            if len(self._kept) >= _PRINCIPALS:
                self._kept.popitem(last=False)
            found = self._kept[principal] = self._make(principal)
        else:
            self._kept.move_to_end(principal)
        return found


def _measured(text: str) -> bytes:
    """A text with its length in front, so that several can't run together."""
    encoded = text.encode()
    return len(encoded).to_bytes(4, "big") + encoded


def _keep(cache: dict[tuple[str, str], str], name: tuple[str, str], value: str) -> None:
    if len(cache) >= _KEPT:
        cache.clear()
    cache[name] = value


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def _foreign(kind: str, ref: str) -> NotFound:
    shown = ref if len(ref) <= 60 else ref[:60] + "…"
    return NotFound(f"{shown!r} is no {kind} of this server", hint="use a ref exactly as this server gave it")
