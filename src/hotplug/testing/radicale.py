"""A real CalDAV server (Radicale) on loopback, for as long as a block runs.

```python
async with radicale(calendars={"work": "Work"}) as server:
    await server.put("work", "standup.ics", ical)
    for event in await server.stored():
        print(event.href, event.ical)
```

`stored()` reads by plain HTTP, past whatever MCP server is being judged: it is the independent witness of what was
really kept. Radicale comes with `pip install 'hotplug[demo]'`.
"""

from __future__ import annotations

import importlib.util
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

import anyio
import httpx2

from hotplug.errors import ConfigError, ConnectError

if TYPE_CHECKING:
    from anyio.abc import Process

__all__ = ["RadicaleServer", "StoredEvent", "radicale"]

_START_SECONDS: Final = 20.0
_STOP_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.02

_PORTS_TRIED: Final = 5

_DAV: Final = "{DAV:}"
_CALDAV: Final = "{urn:ietf:params:xml:ns:caldav}"

# Radicale ends with the program that started it, even when that is killed: its standard input closes then.
_CHILD: Final = """
import os, runpy, sys, threading
def watch():
    while os.read(0, 64):
        pass
    os._exit(0)
threading.Thread(target=watch, daemon=True).start()
sys.argv = ["radicale", "--config", sys.argv[1]]
runpy.run_module("radicale", run_name="__main__", alter_sys=True)
"""

_SETTINGS: Final = """
[server]
hosts = 127.0.0.1:{port}
max_connections = 64
[auth]
type = htpasswd
htpasswd_filename = {users}
htpasswd_encryption = plain
delay = 0
[rights]
type = owner_only
[storage]
filesystem_folder = {folder}
[web]
type = none
[logging]
level = info
"""

_ASK_EVENTS: Final = b"""<?xml version="1.0" encoding="utf-8"?>
<c:calendar-query xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav">
  <d:prop><d:getetag/><c:calendar-data/></d:prop>
  <c:filter><c:comp-filter name="VCALENDAR"/></c:filter>
</c:calendar-query>"""

_ASK_TYPES: Final = b"""<?xml version="1.0" encoding="utf-8"?>
<d:propfind xmlns:d="DAV:"><d:prop><d:resourcetype/></d:prop></d:propfind>"""

_MAKE_CALENDAR: Final = """<?xml version="1.0" encoding="utf-8"?>
<c:mkcalendar xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"><d:set><d:prop>
  <d:displayname>{name}</d:displayname>
  <c:supported-calendar-component-set><c:comp name="VEVENT"/></c:supported-calendar-component-set>
</d:prop></d:set></c:mkcalendar>"""


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """One calendar object as the server keeps it.

    Args:
        collection: The last part of the collection's path, as in `calendars=`.
        href: The absolute path on the server.
        etag: The strong ETag with its quotes.
        ical: The iCalendar text (RFC 5545), lines ended by CRLF as served.
    """

    collection: str
    href: str
    etag: str
    ical: str


class RadicaleServer:
    """A running Radicale with one user; made by `radicale()`.

    Args:
        url: The root, with a slash at its end.
        username: The only user.
        password: Random; different for each server.
        client: Speaks to the server as that user.
    """

    def __init__(self, url: str, username: str, password: str, client: httpx2.AsyncClient) -> None:
        self.url = url
        self.username = username
        self.password = password
        self._client = client

    @property
    def user_url(self) -> str:
        """The user's home, which holds the calendars, with a slash at its end."""
        return f"{self.url}{quote(self.username)}/"

    def calendar_url(self, collection: str) -> str:
        """The absolute address of a calendar, with a slash at its end."""
        return f"{self.user_url}{quote(collection, safe='')}/"

    async def add_calendar(self, collection: str, name: str) -> None:
        """Makes a calendar (MKCALENDAR, RFC 4791 section 5.3.1) with a display name; two may share one name."""
        body = _MAKE_CALENDAR.format(name=escape(name)).encode()
        await self._ask("MKCALENDAR", self.calendar_url(collection), body, {"Content-Type": "application/xml"})

    async def remove_calendar(self, collection: str) -> None:
        """Removes a calendar with all that it holds, as another client of the same account would."""
        await self._ask("DELETE", self.calendar_url(collection))

    async def put(self, collection: str, name: str, ical: str) -> str:
        """Stores a calendar object under `name` (such as `lunch.ics`), as another client would.

        Returns:
            The new ETag.
        """
        answer = await self._ask(
            "PUT",
            self.calendar_url(collection) + quote(name, safe=""),
            ical.encode(),
            {"Content-Type": "text/calendar; charset=utf-8"},
        )
        return answer.headers["etag"]

    async def remove(self, collection: str, name: str) -> None:
        """Removes a calendar object, as another client would."""
        await self._ask("DELETE", self.calendar_url(collection) + quote(name, safe=""))

    async def stored(self) -> list[StoredEvent]:
        """All calendar objects of all calendars as kept now, in the order of their paths."""
        found: list[StoredEvent] = []
        for path in await self._calendars():
            answer = await self._ask("REPORT", self._absolute(path), _ASK_EVENTS, {"Depth": "1"})
            for response in _responses(answer.content):
                ical = response.findtext(f".//{_CALDAV}calendar-data")
                if ical is None:
                    continue
                found.append(
                    StoredEvent(
                        collection=unquote(path.rstrip("/").rsplit("/", 1)[-1]),
                        href=response.findtext(f"{_DAV}href", ""),
                        etag=response.findtext(f".//{_DAV}getetag", ""),
                        # An XML reader has turned CRLF into LF.
                        ical=ical.replace("\r\n", "\n").replace("\n", "\r\n"),
                    )
                )
        return sorted(found, key=lambda event: event.href)

    async def _calendars(self) -> list[str]:
        answer = await self._ask("PROPFIND", self.user_url, _ASK_TYPES, {"Depth": "1"})
        return sorted(
            response.findtext(f"{_DAV}href", "")
            for response in _responses(answer.content)
            if response.find(f".//{_DAV}resourcetype/{_CALDAV}calendar") is not None
        )

    def _absolute(self, path: str) -> str:
        return self.url.rstrip("/") + path

    async def _ask(
        self, method: str, url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        answer = await self._client.request(method, url, content=body, headers=dict(headers or {}))
        if not answer.is_success:
            raise ConnectError(
                f"Radicale answered {method} {url} with {answer.status_code}: {answer.text[:200]!r}",
                target=self.url,
                transport="http",
            )
        return answer


@asynccontextmanager
async def radicale(
    *, calendars: Mapping[str, str] | None = None, username: str = "alice"
) -> AsyncGenerator[RadicaleServer]:
    """Runs Radicale on a free port of 127.0.0.1 until the block ends, then removes all that it kept.

    Args:
        calendars: The last part of each calendar's path, with its display name.
        username: The only user; the password is random.

    Raises:
        ConfigError: The `radicale` package isn't installed.
        ConnectError: It ended early, or wasn't ready in 20 s; `log` holds its last lines.
    """
    if importlib.util.find_spec("radicale") is None:
        raise ConfigError(
            "the package `radicale` is not installed, so no calendar server can be started",
            hint="pip install 'hotplug[demo]'",
        )
    password = secrets.token_urlsafe(18)
    with tempfile.TemporaryDirectory(prefix="hotplug-radicale-") as name:
        folder = Path(name)
        users = folder / "users"
        users.touch(mode=0o600)
        users.write_text(f"{username}:{password}\n", encoding="utf-8")
        async with (
            _running(folder, users) as url,
            httpx2.AsyncClient(auth=httpx2.BasicAuth(username, password), timeout=30.0, trust_env=False) as client,
        ):
            server = RadicaleServer(url, username, password, client)
            for collection, display_name in (calendars or {}).items():
                await server.add_calendar(collection, display_name)
            yield server


@asynccontextmanager
async def _running(folder: Path, users: Path) -> AsyncGenerator[str]:
    """The address of a Radicale that runs until the block ends.

    Radicale refuses port 0, so a free port is asked of the system first; where another program takes it meanwhile,
    Radicale ends, and the next port is tried.
    """
    settings, log = folder / "config", folder / "log"
    for tries_left in reversed(range(_PORTS_TRIED)):
        port = _free_port()
        settings.write_text(_SETTINGS.format(users=users, folder=folder / "collections", port=port), encoding="utf-8")
        async with _process(settings, log) as process:
            if await _ready(process, log, port):
                yield f"http://127.0.0.1:{port}/"
                return
            ended, lines = process.returncode, _lines(log)
        if not tries_left or not any("cannot create server socket" in line for line in lines):
            raise ConnectError(
                "Radicale wasn't ready in time" if ended is None else f"Radicale ended with exit code {ended}",
                transport="http",
                log=lines[-10:],
                hint="see its last lines in `log`",
            )


@asynccontextmanager
async def _process(settings: Path, log: Path) -> AsyncGenerator[Process]:
    with log.open("wb") as sink:
        # A session of its own, so that Ctrl-C reaches us alone and the block ends in order.
        process = await anyio.open_process(
            [sys.executable, "-c", _CHILD, str(settings)],
            stdin=subprocess.PIPE,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.terminate()
            with anyio.move_on_after(_STOP_SECONDS):
                await process.wait()
            if process.returncode is None:
                process.kill()
                await process.wait()
            await process.aclose()


async def _ready(process: Process, log: Path, port: int) -> bool:
    """Whether it took the port, as its own log says; an answer on the port could be another program's."""
    with anyio.move_on_after(_START_SECONDS):
        while process.returncode is None:
            lines = _lines(log)
            if any(f"Listening on '127.0.0.1:{port}'" in line for line in lines) and any(
                "server ready" in line for line in lines
            ):
                return True
            await anyio.sleep(_POLL_SECONDS)
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _lines(log: Path) -> tuple[str, ...]:
    return tuple(log.read_text(encoding="utf-8", errors="replace").splitlines())


def _responses(body: bytes) -> list[ET.Element]:
    return ET.fromstring(body).findall(f"{_DAV}response")  # noqa: S314 - of the server that we started
