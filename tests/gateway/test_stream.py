"""Frames are written as events that any reader of server-sent events takes."""

from __future__ import annotations

from hotplug.gateway.front.stream import event
from hotplug.gateway.link import Frame
from hotplug.gateway.message import Message


def test_a_message_is_one_event_with_its_id() -> None:
    message = Message.parse(b'{"jsonrpc":"2.0","method":"m"}')
    assert event(Frame(message, "a~1", 5)) == (
        b'event: message\r\nid: a~1\r\nretry: 5\r\ndata: {"jsonrpc":"2.0","method":"m"}\r\n\r\n'
    )


def test_a_mark_without_message_has_empty_data() -> None:
    assert event(Frame(None, "x")) == b"id: x\r\ndata: \r\n\r\n"


def test_line_breaks_inside_a_message_dont_end_its_event() -> None:
    written = event(Frame(Message.parse(b'{"jsonrpc":"2.0",\r\n\n"method":"m"}')))
    assert written.count(b"\r\n\r\n") == 1
    assert written.count(b"data:") == 1
