"""Secrets that callers name in sensitive fields, filled in at the last moment: a caller never has them (wire page).

`{"secret": "NAME"}` in a field that the profile marks as sensitive becomes the value, where the secret lists the
operation, the server and the thread; the value is in no answer.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, cast

from hotplug.connect.masking import Masker
from hotplug.connect.secrets import Destination, Secrets
from hotplug.errors import ConfigError, Unavailable
from hotplug.gateway.offers import Offer

__all__ = ["Filling"]

_logger = logging.getLogger(__name__)


class Filling:
    """Fills secrets in.

    Args:
        secrets: The owner's.
    """

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets

    async def filled(self, offer: Offer, arguments: Any, *, thread: str) -> tuple[Any, Masker | None]:
        """The arguments with the values, and what takes these out of the answer; None where none was named.

        Raises:
            PermissionDenied: There is no such secret, or it may not go there: one answer for both.
            Unavailable: It can't be had now; why is the owner's to know.
        """
        to = Destination(server=offer.server, member=offer.member, thread=thread)
        values: list[str] = []
        try:
            found = await self._walk(arguments, None, offer.bound.sensitive, to, values)
        except ConfigError as error:
            _logger.warning("a secret for %s can't be had: %s", offer.member, error)
            raise Unavailable("a secret that is named can't be had now; its owner is told why") from None
        return (found, Masker(values)) if values else (arguments, None)

    async def _walk(
        self, value: Any, name: str | None, sensitive: frozenset[str], to: Destination, values: list[str]
    ) -> Any:
        if isinstance(value, Mapping):
            members = cast("Mapping[str, Any]", value)
            named = members.get("secret")
            if name in sensitive and set(members) == {"secret"} and isinstance(named, str):
                values.append((await self._secrets.get(named, to)).reveal())
                return values[-1]
            return {key: await self._walk(one, key, sensitive, to, values) for key, one in members.items()}
        if isinstance(value, list):
            return [await self._walk(one, name, sensitive, to, values) for one in cast("list[Any]", value)]
        return value
