"""The digest by which a repeat under a key is told from other arguments."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any, cast

from hotplug.errors import CanonicalError, InvalidArgument
from hotplug.profile.canonical import canonical

__all__ = ["argument_digest"]


def argument_digest(key: bytes, hidden: frozenset[str], arguments: Mapping[str, Any], instance: str) -> str:
    """`sha256:<hex>` over arguments and instance, sensitive values by keyed hash: a plain one could be guessed from.

    Args:
        hidden: Names of the sensitive arguments.

    Raises:
        InvalidArgument: The arguments have no canonical form: a number too large for JSON, half a surrogate pair.
    """
    try:
        body = {"arguments": _hide(key, arguments, hidden) if hidden else arguments, "instance": instance}
        return f"sha256:{hashlib.sha256(canonical(body)).hexdigest()}"
    except CanonicalError as error:
        raise InvalidArgument(f"the arguments have no canonical form: {error.message}") from None


def _hide(key: bytes, value: Any, hidden: frozenset[str]) -> Any:
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        return {
            name: _keyed(key, item) if name in hidden else _hide(key, item, hidden) for name, item in members.items()
        }
    if isinstance(value, list):
        return [_hide(key, item, hidden) for item in cast("list[Any]", value)]
    return value


def _keyed(key: bytes, value: Any) -> str:
    return hmac.new(key, canonical(value), hashlib.sha256).hexdigest()
