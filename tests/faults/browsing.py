"""A published browser server with a real Chromium, and the pages that it is sent to."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import aiohttp
from aiohttp import web

from hotplug.connect import CommandTarget
from hotplug.errors import ConfigError
from hotplug.gateway.config import ServerConfig
from hotplug.testing.suite import find_node

from ..gateway.roads import Hall, Session, Thread, hall, until  # noqa: TID252  # tests are no package
from ..npm import installed  # noqa: TID252  # tests are no package

__all__ = ["BODY", "Chromium", "Site", "Window", "act", "ask", "browsing", "limit", "opened", "said", "told"]

BODY = b"five!"
"""What an attachment of the site holds."""

PATIENCE = 90.0
"""Seconds for what has no limit of its own: a machine that is busy starts a browser slowly."""

_LOCK = Path(__file__).parent / "browser_server"
_PAGE = "<!doctype html><html><head><title>{title}</title></head><body>{body}</body></html>"
_NAMES = ("chromium", "chromium-browser")


def chromium() -> str:
    """The program."""
    for name in _NAMES:
        if (found := shutil.which(name)) is not None:
            return found
    raise ConfigError("Chromium is not installed", hint="Debian, Ubuntu: apt-get install chromium")


@asynccontextmanager
async def browsing(folder: Path, *options: str, at: str | None = None, **env: str) -> AsyncIterator[Hall]:
    """A gateway with the server as npm has it, as `browser`.

    Args:
        folder: Where its downloads go, to `out`.
        options: Of the server.
        at: The endpoint of a running Chromium; None: it starts one of its own.
        env: Variables for it.
    """
    program = installed(_LOCK) / "@playwright" / "mcp" / "cli.js"
    own = ("--headless", "--no-sandbox", "--executable-path", chromium())
    which = own if at is None else ("--cdp-endpoint", at)
    argv = (str(find_node()), str(program), *which, "--output-dir", str(folder / "out"), *options)
    server = ServerConfig("browser", CommandTarget(argv, env=env), start_timeout=PATIENCE)
    async with hall(folder, {"browser": server}) as h:
        yield h


async def opened(h: Hall) -> Thread:
    """A thread that waits for a browser's start."""
    thread = await h.thread()
    thread.limit = PATIENCE
    return thread


async def limit(h: Hall, seconds: float | None) -> None:
    """Change the server's `call_timeout`, as its owner does in the file; what runs goes on."""
    server = replace(h.gateway.config.servers["browser"], call_timeout=seconds)
    await h.gateway.reconfigure(replace(h.gateway.config, servers={"browser": server}))


def said(answer: dict[str, Any]) -> str:
    """The text of a tool's answer."""
    assert "content" in answer, answer
    return "\n".join(one["text"] for one in answer["content"] if one["type"] == "text")


async def ask(who: Thread | Session, tool: str, **arguments: Any) -> dict[str, Any]:
    """What the browser's server answers."""
    return await who.call(f"browser.browser_{tool}", arguments)


async def act(who: Thread | Session, tool: str, **arguments: Any) -> str:
    """What it says to a call that succeeds."""
    answer = await ask(who, tool, **arguments)
    assert not answer.get("isError"), answer
    return said(answer)


async def told(who: Thread, answer: dict[str, Any], *words: str) -> dict[str, Any]:
    """The first answer with these words, from this one on: what happens beside the calls, the next one tells."""
    async with asyncio.timeout(PATIENCE):
        while not all(word in said(answer) for word in words):
            answer = await ask(who, "snapshot")
    return answer


class Site:
    """Pages on loopback.

    `asked` has the time of each path's last request, `left` is set when a browser gave up an attachment that stalls.
    """

    def __init__(self) -> None:
        self.url = ""
        self.asked: dict[str, float] = {}
        self.left = asyncio.Event()
        self._pages: dict[str, str] = {}

    @classmethod
    @asynccontextmanager
    async def open(cls, **pages: str) -> AsyncIterator[Self]:
        """Serve pages by name: the body of each. One named `login` logs in, and `/who` says who that was."""
        site = cls()
        site._pages = pages
        app = web.Application()
        app.router.add_get("/who", site._who)
        app.router.add_get("/{kind:whole|sniffed|announced}/{name}", site._attachment)
        app.router.add_get("/{name}", site._page)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            site.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield site
        finally:
            await runner.cleanup()

    async def _page(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in self._pages:
            raise web.HTTPNotFound
        self.asked[request.path] = asyncio.get_running_loop().time()
        answer = web.Response(text=_PAGE.format(title=name, body=self._pages[name]), content_type="text/html")
        if name == "login":
            answer.set_cookie("login", "ada", httponly=True)
        return answer

    async def _who(self, request: web.Request) -> web.Response:
        return web.Response(text=f"It is {request.cookies.get('login', 'nobody')}.")

    async def _attachment(self, request: web.Request) -> web.StreamResponse:
        """All of it, or two of its five bytes and then nothing.

        `sniffed`: a browser may look into the bytes for what it is, and waits for more of them before it says that a
        download begins. `announced`: it may not, and says so at once.
        """
        kind, name = request.match_info["kind"], request.match_info["name"]
        self.asked[request.path] = asyncio.get_running_loop().time()
        headers = {"Content-Disposition": f'attachment; filename="{name}"', "Content-Length": str(len(BODY))}
        if kind == "announced":
            headers["X-Content-Type-Options"] = "nosniff"
        answer = web.StreamResponse(headers=headers)
        await answer.prepare(request)
        if kind == "whole":
            await answer.write(BODY)
            return answer
        await answer.write(BODY[:2])
        try:
            await asyncio.Event().wait()
        finally:
            self.left.set()
        return answer


@dataclass(frozen=True)
class Chromium:
    """A Chromium that runs already, for a server to connect to, and for somebody who looks at it from outside."""

    url: str
    client: aiohttp.ClientSession

    @classmethod
    @asynccontextmanager
    async def running(cls, folder: Path) -> AsyncIterator[Self]:
        home = folder / "chromium"
        options = (
            "--headless",
            "--no-sandbox",
            "--remote-debugging-port=0",
            f"--user-data-dir={home}",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-dev-shm-usage",
        )
        none = asyncio.subprocess.DEVNULL
        program = await asyncio.create_subprocess_exec(
            chromium(), *options, "about:blank", stdin=none, stdout=none, stderr=none, start_new_session=True
        )
        told = home / "DevToolsActivePort"
        try:
            await until(lambda: told.exists() and told.read_text().count("\n") == 1, PATIENCE)
            async with aiohttp.ClientSession() as client:
                yield cls(f"http://127.0.0.1:{told.read_text().splitlines()[0]}", client)
        finally:
            os.killpg(program.pid, signal.SIGKILL)
            await program.wait()

    @asynccontextmanager
    async def watching(self, url: str) -> AsyncIterator[Window]:
        """A connection of one's own to the tab that shows this."""
        async with self.client.ws_connect(await self._tab(url), max_msg_size=0) as socket:
            yield Window(socket)

    async def _tab(self, url: str) -> str:
        async with asyncio.timeout(PATIENCE):
            while True:
                async with self.client.get(f"{self.url}/json/list") as answer:
                    for one in await answer.json():
                        if one["type"] == "page" and one["url"] == url:
                            return one["webSocketDebuggerUrl"]
                await asyncio.sleep(0.02)


class Window:
    """One tab, as a person has it before them."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._id = 0

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._id += 1
        await self._socket.send_json({"id": self._id, "method": method, "params": params})
        async with asyncio.timeout(PATIENCE):
            while (answer := await self._socket.receive_json()).get("id") != self._id:
                pass
        assert "error" not in answer, answer
        return answer["result"]

    async def value(self, expression: str) -> Any:
        """What JavaScript gives in it."""
        found = await self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        return found["result"].get("value")

    async def becomes(self, expression: str, wanted: Any) -> None:
        """Wait until JavaScript gives this in it."""
        async with asyncio.timeout(PATIENCE):
            while await self.value(expression) != wanted:
                await asyncio.sleep(0.02)
