from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hotplug.gateway.links.sse import SseEvent, SseParser, SseTooLarge


def parsed(*chunks: bytes) -> list[SseEvent]:
    parser = SseParser()
    return [event for chunk in chunks for event in parser.feed(chunk)]


def second_opinion(stream: bytes) -> list[SseEvent]:
    """The algorithm of the standard, read off letter by letter over the whole stream at once."""
    if stream[:3] == b"\xef\xbb\xbf":
        stream = stream[3:]
    *lines, _unfinished = re.split(rb"\r\n|\r|\n", stream)
    events: list[SseEvent] = []
    data, id_, kind, retry = b"", None, b"", None
    for line in lines:
        if line == b"":
            if data.endswith(b"\n"):
                data = data[:-1]
            if data or id_ is not None or retry is not None:
                events.append(
                    SseEvent(
                        data or None,
                        id_.decode(errors="replace") if id_ is not None else None,
                        kind.decode(errors="replace"),
                        retry,
                    )
                )
            data, id_, kind, retry = b"", None, b"", None
            continue
        if line[0:1] == b":":
            continue
        colon = line.find(b":")
        field, value = (line, b"") if colon < 0 else (line[:colon], line[colon + 1 :])
        if value[0:1] == b" ":
            value = value[1:]
        if field == b"event":
            kind = value
        elif field == b"data":
            data += value + b"\n"
        elif field == b"id" and b"\x00" not in value:
            id_ = value
        elif field == b"retry" and re.fullmatch(rb"[0-9]{1,12}", value):
            retry = int(value)
    return events


PIECES = [
    b"data", b"id", b"event", b"retry", b":", b" ", b"\r", b"\n", b"\r\n", b"\n\n", b"\r\r", b"\xef\xbb\xbf", b"\0",
    b"7", b"12", "é".encode(),
    "\u2028".encode(), b"{}", b"x", b"data: a\n", b"id: 1\n", b"retry: 3\n", b": hi\n", b"\xff",
]  # fmt: skip


@given(
    st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join),
    st.lists(st.integers(0, 200), max_size=12),
)
@example(b"\xef\xbb\xbfdata: x\r\n\r\n", [1, 2, 11, 12])
@example(b"data: a\r\ndata: b\r\r", [8, 9, 17])
@example(b"\xef\xbbdata: a\n\n", [1, 2])
def test_any_stream_cut_anywhere_gives_what_the_standard_says(stream: bytes, cuts: list[int]) -> None:
    places = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    chunks = [stream[start:end] for start, end in itertools.pairwise(places)]
    assert parsed(*chunks) == second_opinion(stream)


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_every_line_end_in_single_bytes(end: bytes) -> None:
    stream = end.join([b": hello", b"id: 7", b"retry: 10", b"event: x", b"data: one", b"data:two", b"data", b"", b""])
    chunks = [stream[at : at + 1] for at in range(len(stream))]
    assert parsed(*chunks) == [SseEvent(b"one\ntwo\n", "7", "x", 10)]


def test_data_is_left_as_the_bytes_that_came() -> None:
    data = '{"e":"é\u2028\\u00e9","n":1.50}'.encode()
    stream = b"data: " + data + b"\r\n\r\n"
    for cut in range(len(stream)):
        assert parsed(stream[:cut], stream[cut:]) == [SseEvent(data)]


def test_an_event_without_data_still_sets_an_id() -> None:
    assert parsed(b"id: p1\nretry: 500\ndata: \n\n") == [SseEvent(None, "p1", "", 500)]
    assert parsed(b"id\ndata: x\n\n") == [SseEvent(b"x", "")]


def test_what_is_not_ended_by_a_blank_line_is_no_event() -> None:
    assert parsed(b"data: x\n\ndata: y\n") == [SseEvent(b"x")]
    assert parsed(b"data: x") == []


def test_an_id_with_a_nul_and_a_retry_that_is_no_number_are_ignored() -> None:
    assert parsed(b"id: a\0b\nretry: 1s\ndata: x\n\n") == [SseEvent(b"x")]


@pytest.mark.parametrize("stream", [b"data: " + b"x" * 200, b"data: xxxxxxxx\n" * 20, b"x" * 101])
def test_an_event_over_the_limit_is_refused(stream: bytes) -> None:
    parser = SseParser(limit=100)

    def feed_all() -> None:
        for at in range(0, len(stream), 10):
            parser.feed(stream[at : at + 10])

    with pytest.raises(SseTooLarge):
        feed_all()


def test_the_limit_is_of_each_event_alone() -> None:
    parser = SseParser(limit=100)
    assert len(parser.feed(b"data: xxxxxxxxxxxxxxxxxxxx\n\n" * 50)) == 50
    assert all(not parser.feed(b": ping\n\n") for _ in range(100))


def test_an_event_may_be_as_large_as_is_allowed_however_it_comes() -> None:
    limit = 1000
    for size in (1, 7, 500, 2000):
        parser = SseParser(limit)
        events: list[SseEvent] = []
        stream = b"data: " + b"x" * (limit - 10) + b"\n\n"
        for _ in range(2):
            for at in range(0, len(stream), size):
                events += parser.feed(stream[at : at + size])
        assert [len(event.data or b"") for event in events] == [limit - 10] * 2
        with pytest.raises(SseTooLarge):
            _feed(parser, b"data: " + b"x" * 2 * limit + b"\n", size)


def _feed(parser: SseParser, stream: bytes, size: int) -> None:
    for at in range(0, len(stream), size):
        parser.feed(stream[at : at + size])
