"""A session is one client's conversation with several servers, and is good for its own thread alone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from hotplug.gateway.link import Frame, Link
from hotplug.gateway.message import Message, Raw, dumps
from hotplug.gateway.sessions import Session, Sessions

pytestmark = pytest.mark.anyio


class FakeLink:
    """A link that says nothing of itself: for what a session does with its links."""

    era = "legacy"

    def __init__(self, *frames: Frame) -> None:
        self.lost: str | None = None
        self.closed = False
        self._frames = frames

    async def general(self) -> AsyncIterator[Frame]:
        for frame in self._frames:
            yield frame

    async def aclose(self) -> None:
        self.closed = True


def _request(id_: object, **meta: object) -> Frame:
    return Frame(Message.request(Raw(dumps(id_)), "elicitation/create", {"_meta": meta} if meta else {}))


def _session(links: dict[str, FakeLink] | None = None, opened: list[str] | None = None) -> Session:
    async def open_link(session: Session, server: str) -> Link:
        if opened is not None:
            opened.append(server)
        await asyncio.sleep(0)
        return (links or {})[server]  # type: ignore[return-value]

    return Session("t_1", {}, open_link)


async def test_answers_go_back_to_the_server_that_asked_under_its_own_id() -> None:
    session = _session()
    first = session.down("a", _request(1)).message
    second = session.down("b", _request(1)).message
    assert first is not None
    assert second is not None
    assert first.id != second.id
    back = session.answered(Message.result_of(second.id or b"", {}))
    assert back is not None
    assert (back[0], back[1].id) == ("b", b"1")
    back = session.answered(Message.result_of(first.id or b"", {}))
    assert back is not None
    assert (back[0], back[1].id) == ("a", b"1")


async def test_an_answer_that_nobody_asked_for_goes_nowhere_and_none_goes_twice() -> None:
    session = _session()
    assert session.answered(Message.result_of(b"1", {})) is None
    session.down("a", _request(1))
    assert session.answered(Message.result_of(b"1", {})) is not None
    assert session.answered(Message.result_of(b"1", {})) is None


async def test_event_ids_lead_back_to_their_server() -> None:
    assert _session().down("a", Frame(None, "7")).event_id == "a~7"


async def test_the_progress_of_a_servers_request_belongs_to_that_server() -> None:
    session = _session()
    session.down("a", _request(1, progressToken="p"))
    assert session.asked_by(b'"p"') == "a"
    assert session.asked_by(b'"q"') is None


async def test_the_tokens_of_two_servers_questions_never_meet_and_none_outlives_its_question() -> None:
    session = _session()
    session.down("a", _request(1, progressToken=1))
    other = session.down("b", _request(2, progressToken=1)).message
    assert other is not None
    assert "progressToken" not in other.meta
    assert session.asked_by(b"1") == "a"
    session.answered(Message.result_of(other.id or b"", {}))
    assert session.asked_by(b"1") == "a"
    session.answered(Message.result_of(b"1", {}))
    assert session.asked_by(b"1") is None


async def test_an_answer_to_a_server_that_is_gone_never_answers_the_one_in_its_place() -> None:
    links = {"a": FakeLink()}
    session = _session(links)
    await session.link("a")
    old = session.down("a", _request(0)).message
    assert old is not None
    links["a"].lost = "it crashed"
    links["a"] = FakeLink()
    await session.link("a")
    new = session.down("a", _request(0)).message
    assert new is not None
    assert session.answered(Message.result_of(old.id or b"", {"old": True})) is None
    back = session.answered(Message.result_of(new.id or b"", {}))
    assert back is not None
    assert (back[0], back[1].id) == ("a", b"0")
    await session.aclose()


async def test_what_a_reader_didnt_get_any_more_is_left_to_the_next() -> None:
    session = _session()
    for number in range(3):
        session.tell(_request(number))
    stream = session.general()
    first = await anext(stream)
    await anext(stream)
    # Its connection broke while the second was written.
    await stream.aclose()  # type: ignore[attr-defined]
    ids: list[bytes | None] = []
    async with asyncio.timeout(30):
        async for frame in session.general():
            assert frame.message is not None
            ids.append(frame.message.id)
            if len(ids) == 2:
                break
    assert (first.message or _request(9).message).id == b"0"  # type: ignore[union-attr]
    assert ids == [b"1", b"2"]
    await session.aclose()


async def test_of_two_readers_the_later_one_gets_what_comes_and_the_earlier_one_after_it() -> None:
    session = _session()
    earlier, later = session.general(), session.general()
    first = asyncio.ensure_future(anext(earlier))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(anext(later))
    await asyncio.sleep(0)
    session.tell(_request(0))
    async with asyncio.timeout(30):
        assert (await second).message is not None
        session.tell(_request(1))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not first.done()
        await later.aclose()  # type: ignore[attr-defined]
        # What the later one was writing when it broke comes first.
        ids = [one.message.id for one in (await first, await anext(earlier)) if one.message is not None]
    assert ids == [b"0", b"1"]
    await session.aclose()


async def test_what_nobody_reads_is_bounded_by_its_size_too() -> None:
    session = _session()
    for number in range(100):
        session.tell(Frame(Message.notification("notifications/message", {"n": number, "data": "x" * 100_000})))
    numbers: list[int] = []
    session.tell(Frame(Message.notification("end")))
    async with asyncio.timeout(30):
        async for frame in session.general():
            if frame.message is None or frame.message.method == "end":
                break
            numbers.append(frame.message.value("n"))
    assert 5 <= len(numbers) <= 11
    assert numbers == list(range(100 - len(numbers), 100))
    await session.aclose()


async def test_a_link_is_opened_once_for_all_who_need_it_at_once() -> None:
    opened: list[str] = []
    session = _session({"a": FakeLink()}, opened)
    await asyncio.gather(*(session.link("a") for _ in range(10)))
    assert opened == ["a"]
    await session.aclose()


async def test_a_lost_link_is_replaced_when_it_is_needed_again() -> None:
    opened: list[str] = []
    links = {"a": FakeLink()}
    session = _session(links, opened)
    (await session.link("a"))
    links["a"].lost = "it crashed"
    assert session.links() == {}
    links["a"] = FakeLink()
    assert (await session.link("a")).lost is None
    assert opened == ["a", "a"]
    await session.aclose()


async def test_what_servers_say_besides_comes_on_one_stream_also_from_before_it_was_read() -> None:
    note = Frame(Message.notification("notifications/message"))
    session = _session({"a": FakeLink(note), "b": FakeLink(note)})
    await session.link("a")
    await session.link("b")
    stream = session.general()
    async with asyncio.timeout(30):
        for _ in range(2):
            frame = await anext(stream)
            assert frame.message is not None
            assert frame.message.method == "notifications/message"
    await session.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_a_session_serves_no_other_thread_and_ends_with_its_links() -> None:
    released: list[Session] = []

    async def release(session: Session) -> None:
        released.append(session)

    sessions = Sessions(release, limit=1)
    link = FakeLink()
    session = _session({"a": link})
    assert sessions.add(session)
    assert not sessions.add(_session())
    await session.link("a")
    assert sessions.get(session.id, "t_1") is session
    assert sessions.get(session.id, "t_2") is None
    await sessions.end(session)
    await sessions.end(session)
    assert link.closed
    assert released == [session]
    assert sessions.get(session.id, "t_1") is None


async def test_sessions_end_that_nobody_uses_for_long_but_not_those_with_something_open() -> None:
    now = 0.0

    async def release(session: Session) -> None:
        pass

    sessions = Sessions(release, idle=10, clock=lambda: now)
    idle, reading = _session(), _session()
    sessions.add(idle)
    sessions.add(reading)
    with sessions.using(reading):
        now = 11.0
        await sessions.sweep()
        assert len(sessions) == 1
    # It was in use until just now.
    await sessions.sweep()
    assert sessions.get(reading.id, "t_1") is reading
    await sessions.aclose()


async def test_a_thread_that_leaves_its_sessions_open_takes_none_from_others() -> None:
    ended: list[str] = []
    now = 0.0

    async def released(session: Session) -> None:
        ended.append(session.id)

    async def open_link(session: Session, server: str) -> Link:
        raise AssertionError("nothing is opened here")

    sessions = Sessions(released, of_one=3, limit=5, clock=lambda: now)

    async def opened(thread: str, name: str) -> Session | None:
        nonlocal now
        now += 1
        session = Session(thread, {}, open_link, id_=name)
        return session if await sessions.make_room(thread) and sessions.add(session) else None

    for name in ("a", "b", "c"):
        assert await opened("t_1", name)
    assert sessions.get("a", "t_1") is not None
    assert await opened("t_1", "d")
    assert ended == ["b"]
    with contextlib.ExitStack() as stack:
        for session in sessions.of("t_1"):
            stack.enter_context(sessions.using(session))
        # All are in use: none of them goes, and the others' thread has its own share.
        assert await opened("t_1", "e") is None
        assert await opened("t_2", "f")
        assert await opened("t_2", "g")
        assert await opened("t_2", "h") is None
    assert len(ended) == 1
    assert await opened("t_1", "i")
    assert ended == ["b", "a"]
    await sessions.aclose()


@pytest.mark.parametrize(
    ("method", "passes"),
    [("notifications/progress", True), ("notifications/message", False), ("notifications/resources/updated", False)],
)
async def test_progress_of_a_call_that_was_given_comes_with_its_answer_whatever_changed(
    method: str, passes: bool
) -> None:
    async def open_link(session: Session, server: str) -> Link:
        raise AssertionError("nothing is opened here")

    session = Session("t_1", {}, open_link, heard=lambda session, server, message: None)
    assert (session.down("a", Frame(Message.notification(method, {}))).message is not None) is passes
    assert session.down("a", Frame(Message.result_of(b"1", {}))).message is not None
    assert session.down("a", _request(1)).message is not None
