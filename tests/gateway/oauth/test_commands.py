"""`hotplug server login` and `logout` as a person meets them: a process, and a browser that it opens."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp.server import MCPServer
from tests.cli.conftest import validated

import hotplug

from .guarded import browser, guarded

pytestmark = pytest.mark.anyio
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


class Person:
    """Somebody at a terminal, with a folder and a browser."""

    def __init__(self, folder: Path) -> None:
        self.config = folder / "hotplug.toml"
        self.logins = folder / "state" / "hotplug" / "logins"
        self.env = {
            **os.environ,
            "PYTHONPATH": str(Path(hotplug.__file__).parents[1]),
            "HOTPLUG_CONFIG": str(self.config),
            "HOTPLUG_SETTINGS": str(folder / "settings.json"),
            "XDG_STATE_HOME": str(folder / "state"),
            "BROWSER": f"{shlex.join([sys.executable, str(HERE / 'browse.py')])} %s",
        }
        self.folder = folder

    async def start(self, *words: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "hotplug",
            *words,
            env=self.env,
            cwd=self.folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def run(self, *words: str) -> Ran:
        return await ended(await self.start(*words))


async def ended(process: asyncio.subprocess.Process, before: Sequence[str] = ()) -> Ran:
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode is not None
    return Ran(process.returncode, out.decode(), "".join(before) + err.decode())


def app() -> Any:
    server = MCPServer("tracker")

    @server.tool()
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    return server.streamable_http_app()


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


async def test_a_person_logs_in_uses_it_and_logs_out(person: Person) -> None:
    async with guarded(app=app(), scopes=["read"]) as server:
        ran = await person.run("server", "add", "tracker", server.url, "--oauth")
        assert ran.out.splitlines()[-1] == "next: hotplug server login tracker"
        ran = await person.run("server", "test", "tracker")
        assert ran.code == 3
        assert "hotplug server login tracker" in ran.out
        ran = await person.run("server", "login", "tracker")
        assert ran.code == 0, ran
        assert "your browser is at 127.0.0.1:" in ran.err
        assert ran.out.splitlines()[1:] == [
            "  scopes: read",
            "  renewed by itself",
            "next: hotplug server test tracker",
        ]
        (path,) = person.logins.glob("tracker-*.json")
        ran = await person.run("server", "test", "tracker")
        assert ran.code == 0, ran
        assert ran.out.startswith("✓ tracker: http")
        ran = await person.run("call", "tracker", "add", "--raw", "a=1", "b=2", "--json")
        assert ran.code == 0, ran
        ran = await person.run("server", "list")
        assert "login" not in ran.out
        server.accounts.take_back()
        server.accounts.refuse_renewals = True
        ran = await person.run("server", "test", "tracker")
        assert (ran.code, "fix: log in: hotplug server login tracker" in ran.out) == (3, True), ran
        ran = await person.run("server", "logout", "tracker", "--json")
        assert validated(ran.out) | {"schema": ""} == {
            "schema": "", "name": "tracker", "was": True, "revoked": True, "problem": None,
        }  # fmt: skip
        assert not path.exists()
        ran = await person.run("server", "logout", "tracker")
        assert (ran.code, ran.out) == (1, "nobody was logged in at tracker\n")


async def test_without_a_browser_the_address_is_said(person: Person) -> None:
    async with guarded() as server:
        await person.run("server", "add", "tracker", server.url, "--oauth")
        process = await person.start("server", "login", "tracker", "--no-browser", "--json")
        assert process.stderr is not None
        async with asyncio.timeout(30):
            lines = [(await process.stderr.readline()).decode() for _ in range(2)]
            await browser(lines[1].strip())
        ran = await ended(process, lines)
        assert ran.code == 0, ran
        document = validated(ran.out)
        (path,) = person.logins.glob("*.json")
        assert (document["kept"], document["renewable"], document["url"]) == (str(path), True, server.url)
        login = json.loads(path.read_text())
        for value in (login["tokens"]["access_token"], login["tokens"]["refresh_token"]):
            assert value not in ran.out + ran.err


async def test_a_denial_and_an_entry_without_oauth_have_their_codes(person: Person) -> None:
    async with guarded() as server:
        server.accounts.deny = True
        person.config.write_text(
            f'[servers.tracker]\nurl = "{server.url}"\noauth = true\n[servers.plain]\nurl = "{server.url}"\n'
            '[servers.bad]\nurl = "https://x.example"\noauth = { client = "a" }\n'
        )
        ran = await person.run("server", "login", "tracker")
        assert (ran.code, ran.out) == (3, "")
        assert "error: tracker: the login was denied" in ran.err
        ran = await person.run("server", "login", "plain")
        assert ran.code == 2
        assert re.search(r"hint: oauth = true in \[servers\.plain\]", ran.err)
        ran = await person.run("server", "login", "bad")
        assert (ran.code, "unknown key 'client'" in ran.err) == (2, True)
        ran = await person.run("server", "login", "tracer")
        assert (ran.code, "tracker" in ran.err) == (2, True)
        ran = await person.run("server", "logout", "tracer")
        assert ran.code == 2


async def test_logins_of_a_server_that_has_gone_or_moved_are_removed(person: Person) -> None:
    async with guarded() as server:
        await person.run("server", "add", "tracker", server.url, "--oauth")
        await person.run("server", "login", "tracker")
        await person.run("server", "remove", "tracker")
        assert len(list(person.logins.glob("*.json"))) == 1
        ran = await person.run("server", "logout", "tracker")
        assert (ran.code, ran.out) == (0, "you are logged out at tracker\n")
        assert not list(person.logins.glob("*.json"))
