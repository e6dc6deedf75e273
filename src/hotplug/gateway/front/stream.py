"""Server-sent events as bytes."""

from __future__ import annotations

from typing import Final

from hotplug.gateway.link import Frame

__all__ = ["PING", "SSE_HEADERS", "event"]

PING: Final = b": ping\r\n\r\n"
SSE_HEADERS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


def event(frame: Frame) -> bytes:
    """One frame as one event. Its message is one line: line breaks in JSON are white space."""
    parts: list[bytes] = []
    if frame.message is not None:
        parts.append(b"event: message\r\n")
    if frame.event_id is not None:
        parts.append(b"id: " + frame.event_id.encode() + b"\r\n")
    if frame.retry is not None:
        parts.append(b"retry: " + str(frame.retry).encode() + b"\r\n")
    if frame.message is None:
        parts.append(b"data: \r\n\r\n")
    else:
        parts.append(b"data: " + frame.message.line()[:-1] + b"\r\n\r\n")
    return b"".join(parts)
