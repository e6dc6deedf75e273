"""A server alone, and the same behind the gateway: over HTTP>HTTP, HTTP>stdio and stdio>stdio."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hotplug.gateway.link import Era
from hotplug.testing.program import started

from .raw_client import RawClient, over_http, over_stdio

Way = Literal["HTTP>HTTP", "HTTP>stdio", "stdio>stdio"]
WAYS: tuple[Way, ...] = ("HTTP>HTTP", "HTTP>stdio", "stdio>stdio")
PATHS = os.pathsep.join(path for path in sys.path if path)
ODD = ("-m", "hotplug.testing.odd")
EVERYTHING = ("-m", "hotplug.testing.everything")


@dataclass(frozen=True)
class Place:
    """Where a client goes: an endpoint, or a program to start."""

    env: Mapping[str, str]
    url: str = ""
    token: str | None = None
    command: tuple[str, ...] = ()

    def client(self, era: Era) -> AbstractAsyncContextManager[RawClient]:
        if self.command:
            return over_stdio(self.command, era, self.env)
        return over_http(self.url, era, self.token)


@contextmanager
def alone(server: Sequence[str], *, http: bool) -> Generator[Place]:
    """The server itself."""
    env = {**os.environ, "PYTHONPATH": PATHS}
    if not http:
        yield Place(env, command=(sys.executable, *server))
        return
    with started((sys.executable, *server, "--http", "0"), env=env) as url:
        yield Place(env, url)


@contextmanager
def behind(folder: Path, servers: Mapping[str, Sequence[str]], way: Way, *, prefixes: bool = False) -> Generator[Place]:
    """The gateway in front of servers, a thread of it opened."""
    front, back = way.split(">")
    store = f"sqlite:///{folder}/store.sqlite3"
    env = {
        **os.environ,
        "PYTHONPATH": PATHS,
        "XDG_CONFIG_HOME": str(folder),
        "XDG_STATE_HOME": str(folder),
        "HOTPLUG_STORE": store,
    }
    with ExitStack() as stack:
        text = f"[store]\nurl = {json.dumps(store)}\n"
        for name, server in servers.items():
            text += f"[servers.{name}]\n" + ("" if prefixes else 'prefix = ""\n')
            if back == "HTTP":
                url = stack.enter_context(started((sys.executable, *server, "--http", "0"), env=env))
                text += f"url = {json.dumps(url)}\n"
            else:
                text += f"command = {json.dumps(sys.executable)}\nargs = {json.dumps(list(server))}\n"
                text += f"env = {{ PYTHONPATH = {json.dumps(PATHS)} }}\n"
        settings = folder / "hotplug.toml"
        settings.write_text(text)
        hotplug = (sys.executable, "-m", "hotplug")
        serve = (*hotplug, "serve", "--config", str(settings))
        if front == "stdio":
            yield Place(env, command=serve)
            return
        url = stack.enter_context(started((*serve, "--http", "0"), env=env))
        told = subprocess.run((*hotplug, "thread", "open", "--json"), env=env, capture_output=True, check=True)
        thread = json.loads(told.stdout)
        yield Place(env, url + thread["path"], thread["token"])
