"""Threads over HTTP: opened by openers and by threads, and one answer to everything that may not be."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
import pytest
import uvicorn

from hotplug.errors import StoreError
from hotplug.gateway.threads import ThreadRecord, Threads
from hotplug.gateway.threads_api import ThreadsApi, authorization_of, unauthorized
from hotplug.store import SqliteStore

pytestmark = pytest.mark.anyio
OPENERS = {name: hashlib.sha256(f"hpo_{name}".encode()).hexdigest() for name in ("editor", "phone")}


class Answered(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


Ask = Callable[..., Awaitable[Answered]]


@asynccontextmanager
async def served(api: ThreadsApi) -> AsyncIterator[str]:
    config = uvicorn.Config(
        api, host="127.0.0.1", port=0, log_level="error", lifespan="off", date_header=False, server_header=False
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    async with asyncio.timeout(30):
        while not server.started:
            await asyncio.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


@pytest.fixture
async def ask(threads: Threads) -> AsyncIterator[Ask]:
    async with served(ThreadsApi(threads, OPENERS)) as base, aiohttp.ClientSession() as session:

        async def asked(method: str, path: str, token: str | None = None, **given: Any) -> Answered:
            headers = given.pop("headers", {} if token is None else {"Authorization": f"Bearer {token}"})
            async with session.request(method, base + path, headers=headers, **given) as answer:
                return Answered(answer.status, dict(answer.headers), await answer.read())

        yield asked


async def opened(ask: Ask, token: str, **body: Any) -> tuple[str, str]:
    answer = await ask("POST", "/threads", token, json=body)
    assert answer.status == 201, answer.body
    return answer.document["thread"]["id"], answer.document["token"]


async def test_an_opener_opens_roots_and_a_thread_its_children(ask: Ask, threads: Threads) -> None:
    answer = await ask("POST", "/threads", "hpo_editor", json={"project": "acme", "title": "Plan"})
    assert (answer.status, answer.headers["Cache-Control"]) == (201, "no-store")
    root, token = answer.document["thread"], answer.document["token"]
    assert (root["parent"], root["project"], root["title"]) == (None, "acme", "Plan")
    assert answer.headers["Location"] == f"/threads/{root['id']}"
    assert answer.document["path"] == f"/threads/{root['id']}/mcp"
    assert threads.authenticate(root["id"], token)
    child, child_token = await opened(ask, token, delegated=True)
    known = threads.get(child)
    assert known is not None
    assert (known.parent, known.delegated, known.project, known.opener) == (root["id"], True, "acme", None)
    assert threads.authenticate(child, child_token)


async def test_an_empty_body_asks_for_nothing_special(ask: Ask) -> None:
    assert (await ask("POST", "/threads", "hpo_editor")).status == 201
    assert (await ask("POST", "/threads", "hpo_editor", json={"project": None, "delegated": None})).status == 201


async def test_a_thread_is_shown_to_itself_to_those_above_it_and_to_its_opener(ask: Ask) -> None:
    root, root_token = await opened(ask, "hpo_editor")
    child, child_token = await opened(ask, root_token)
    under, _ = await opened(ask, child_token)
    for token in (root_token, child_token, "hpo_editor"):
        answer = await ask("GET", f"/threads/{child}", token)
        assert answer.status == 200
        assert answer.document["thread"]["parent"] == root
        assert answer.document["below"] == [under]
        assert b"hpt_" not in answer.body


async def test_closing_is_for_the_thread_those_above_and_its_opener(ask: Ask, threads: Threads) -> None:
    root, root_token = await opened(ask, "hpo_editor")
    for token_of in ("own", "above", "opener"):
        child, child_token = await opened(ask, root_token)
        under, _ = await opened(ask, child_token)
        token = {"own": child_token, "above": root_token, "opener": "hpo_editor"}[token_of]
        answer = await ask("DELETE", f"/threads/{child}", token)
        assert (answer.status, answer.document) == (200, {"closed": [child, under]})
        assert not threads.authenticate(child, child_token)
    assert threads.is_open(root)


async def test_everything_that_may_not_be_is_one_answer_byte_for_byte(ask: Ask, threads: Threads) -> None:
    root, token = await opened(ask, "hpo_editor")
    _, child_token = await opened(ask, token)
    other, other_token = await opened(ask, "hpo_editor")
    alien, _ = await threads.open()
    gone, gone_token = await opened(ask, token)
    await threads.close(gone)
    ways: list[tuple[str, str, Any]] = [
        ("GET", f"/threads/{root}", None),
        ("GET", f"/threads/{root}", "hpt_wrong"),
        ("GET", f"/threads/{root}", other_token),
        ("GET", f"/threads/{root}", child_token),
        ("GET", f"/threads/{root}", "hpo_phone"),
        ("GET", f"/threads/{root}", "hpo_nobody"),
        ("GET", f"/threads/{root}", OPENERS["editor"]),
        ("GET", "/threads/t_aaaaaaaaaaaaaaaa", token),
        ("GET", "/threads/t_aaaaaaaaaaaaaaaa", "hpo_editor"),
        ("GET", "/threads/", token),
        ("GET", f"/threads/{alien.id}", "hpo_editor"),
        ("GET", f"/threads/{gone}", gone_token),
        ("GET", f"/threads/{gone}", token),
        ("GET", f"/threads/{gone}", "hpo_editor"),
        ("DELETE", f"/threads/{root}", child_token),
        ("DELETE", f"/threads/{other}", token),
        ("DELETE", f"/threads/{gone}", token),
        ("DELETE", "/threads/t_aaaaaaaaaaaaaaaa", token),
        ("DELETE", f"/threads/{alien.id}", "hpo_editor"),
        ("PATCH", f"/threads/{root}", "hpt_wrong"),
        ("GET", f"/threads/{root}?token={token}", None),
        ("POST", f"/threads?access_token={token}", None),
        ("POST", "/threads", "hpt_wrong"),
        ("POST", "/threads", gone_token),
        ("GET", "/threads", None),
        ("GET", "/threads/a/b", None),
        ("GET", "/elsewhere", None),
    ]
    answers = [await ask(method, path, given) for method, path, given in ways]
    answers += [
        await ask("GET", f"/threads/{root}", headers=headers)
        for headers in (
            {"Authorization": token},
            {"Authorization": f"Basic {token}"},
            {"Authorization": ""},
            [("Authorization", f"Bearer {token}"), ("Authorization", "Bearer x")],
            {"Cookie": f"token={token}"},
        )
    ]
    assert len({(answer.status, tuple(sorted(answer.headers.items())), answer.body) for answer in answers}) == 1
    (answer,) = {(answer.status, answer.body) for answer in answers}
    assert answer == (401, unauthorized().body)
    assert threads.is_open(root)
    assert threads.is_open(other)


async def test_what_is_allowed_and_wrong_is_told_to_who_may_know(ask: Ask) -> None:
    root, token = await opened(ask, "hpo_editor", project="acme")
    for body, code in (
        (b"{", "invalid_body"),
        (b"[]", "invalid_body"),
        (b'{"parent":"t_other"}', "invalid_body"),
        (b'{"id":"t_mine"}', "invalid_body"),
        (b'{"project":"a","project":"b"}', "invalid_body"),
        (b'{"delegated":1}', "invalid_body"),
        (b'{"title":5}', "invalid_body"),
        (b'{"title":"a\\nb"}', "title"),
        (b'{"project":"other"}', "project"),
        (b"[" * 10_000, "invalid_body"),
        (b"\xff", "invalid_body"),
    ):
        answer = await ask("POST", "/threads", headers=_json(token), data=body)
        assert (answer.status, answer.document["error"]["code"]) == (400, code), body
    answer = await ask("POST", "/threads", "hpo_editor", json={"delegated": True})
    assert (answer.status, answer.document["error"]["code"]) == (400, "delegated")
    answer = await ask("POST", "/threads", headers=_json(token), data=b'{"title":"' + b"x" * 20_000 + b'"}')
    assert answer.status == 413
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "text/plain"}
    assert (await ask("POST", "/threads", headers=headers, data=b"{}")).status == 415
    answer = await ask("PUT", f"/threads/{root}", token)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, DELETE")
    answer = await ask("GET", "/threads", token)
    assert (answer.status, answer.headers["Allow"]) == (405, "POST")
    assert (await ask("GET", f"/threads/{root}/x", token)).status == 404


def _json(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "Content-Type": "application/json; charset=utf-8"}


async def test_bounds_have_answers_of_their_own(store: SqliteStore) -> None:
    async with (
        Threads.over(store, most=70) as threads,
        served(ThreadsApi(threads, OPENERS)) as base,
        aiohttp.ClientSession() as session,
    ):
        token = (await threads.open())[1]

        async def ask(given: str) -> tuple[int, Any]:
            async with session.post(f"{base}/threads", headers={"Authorization": f"Bearer {given}"}) as answer:
                return answer.status, json.loads(await answer.read())

        for _ in range(62):
            status, document = await ask(token)
            assert status == 201
        status, document = await ask(token)
        assert (status, document["error"]["code"]) == (429, "limit")
    async with Threads.over(store) as threads, served(ThreadsApi(threads, OPENERS)) as base:
        deepest: ThreadRecord | None = None
        for _ in range(65):
            deepest, token = await threads.open(parent=None if deepest is None else deepest.id)
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{base}/threads", headers={"Authorization": f"Bearer {token}"}) as answer,
        ):
            assert (answer.status, (await answer.json())["error"]["code"]) == (409, "depth")


async def test_a_store_that_fails_is_told_as_such_and_lets_nobody_in(
    store: SqliteStore, threads: Threads, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    root, token = await opened(ask, "hpo_editor")
    with store.transaction() as c:
        c.execute("ALTER TABLE store_counter RENAME TO elsewhere")
    with pytest.raises(StoreError):
        threads.is_open(root)
    answer = await ask("GET", f"/threads/{root}", token)
    assert (answer.status, answer.document["error"]["code"]) == (503, "unavailable")
    assert b"elsewhere" not in answer.body
    assert token not in caplog.text
    with store.transaction() as c:
        c.execute("ALTER TABLE elsewhere RENAME TO store_counter")


async def test_no_token_is_in_a_log_or_file(
    ask: Ask, everything_written: Callable[[], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    _, token = await opened(ask, "hpo_editor")
    await ask("GET", "/threads/t_none", token)
    assert token not in caplog.text
    assert token.encode() not in everything_written()
    assert b"hpo_editor" not in everything_written()


async def test_many_at_once_get_threads_of_their_own(ask: Ask, threads: Threads) -> None:
    _, token = await opened(ask, "hpo_editor")
    made = await asyncio.gather(*(opened(ask, token) for _ in range(40)))
    assert len({id_ for id_, _ in made}) == 40
    assert all(threads.authenticate(*one) for one in made)


async def test_a_caller_that_goes_away_leaves_nothing(threads: Threads) -> None:
    _, token = await threads.open()
    before = threads.version
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/base/threads",
        "root_path": "/base",
        "headers": [(b"authorization", f"Bearer {token}".encode())],
    }
    await ThreadsApi(threads, {})(scope, receive, send)
    assert (sent, threads.version) == ([], before)


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        ([(b"authorization", b"Bearer a")], "a"),
        ([(b"Authorization", b"bearer a")], "a"),
        ([(b"authorization", b"Bearer a"), (b"authorization", b"Bearer a")], None),
        ([(b"authorization", b"Bearer \xff")], "ÿ"),
        ([(b"x-authorization", b"Bearer a")], None),
        ([], None),
    ],
)
def test_the_token_stands_in_one_header(headers: list[tuple[bytes, bytes]], token: str | None) -> None:
    assert authorization_of(headers) == token
