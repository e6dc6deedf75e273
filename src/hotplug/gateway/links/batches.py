"""The messages in one line or event: one, or several where a server of 2025-03-26 sends a batch."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from hotplug.gateway.message import INVALID_REQUEST, PARSE_ERROR, Message, NotAMessage

__all__ = ["messages_in"]

_batch: Final = msgspec.json.Decoder(list[Raw])


def messages_in(data: bytes) -> list[Message]:
    """The messages, in their order.

    Raises:
        NotAMessage: One of them is none, or it is no JSON.
    """
    if data.lstrip()[:1] != b"[":
        return [Message.parse(data)]
    try:
        parts = _batch.decode(data)
    except msgspec.MsgspecError as error:
        raise NotAMessage(PARSE_ERROR, f"Parse error: {error}"[:300]) from None
    if not parts:
        raise NotAMessage(INVALID_REQUEST, "the batch is empty")
    return [Message.parse(bytes(part)) for part in parts]
