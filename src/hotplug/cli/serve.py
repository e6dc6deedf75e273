"""`hotplug serve`: the gateway, over standard streams for one client or over HTTP for any number of threads."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotplug.cli.command import command, group
from hotplug.cli.config_option import ConfigOption
from hotplug.cli.output import Output
from hotplug.errors import AuthError, ConfigError
from hotplug.gateway.tokens import TOKEN_VARIABLE

if TYPE_CHECKING:
    from hotplug.gateway.app import Gateway
    from hotplug.gateway.config import GatewayConfig

    Reload = Callable[[], GatewayConfig | None]

app = group("One MCP server in front of all of yours.")


@command(app, "serve")
def serve(
    out: Output,
    config: ConfigOption = None,
    http: Annotated[
        str | None,
        typer.Option(
            help="Serve HTTP in place of standard streams, at this port or HOST:PORT (0: any free port).",
            metavar="[HOST:]PORT",
            show_default=False,
        ),
    ] = None,
    thread: Annotated[
        str | None,
        typer.Option(
            help=f"Over standard streams: whose requests these are; its token is in {TOKEN_VARIABLE}.",
            show_default=False,
        ),
    ] = None,
) -> int:
    """Serve every server of hotplug.toml as one, each thread with what it may use.

    A client starts `hotplug serve` as it starts any server, and is then your own root thread. With --http, each thread
    has an endpoint and a token of its own: `hotplug thread open` gives them. The base URL is the first line that is
    written; everything else goes to standard error.

    Changes of hotplug.toml and of the access settings hold at once, for clients that are connected too. A file that
    can't be used changes nothing. The access settings of a file named by --config are in settings.json beside it,
    unless HOTPLUG_SETTINGS names others.

    Exit codes: 0 the client left or a signal came, 2 the configuration can't be used, 3 the token is no open thread's.
    """
    import asyncio

    from hotplug.gateway.reloading import ConfigFiles, Reloading

    if http is not None and thread is not None:
        raise ConfigError("--thread is for standard streams", hint="over HTTP a request's path names its thread")
    files = ConfigFiles(config, Path.cwd())
    stamp = files.stamp()
    loaded = files.load()
    if loaded.path is not None:
        out.used(f"configuration {loaded.path}")
    out.used(f"settings {loaded.settings}")
    for notice in loaded.warnings:
        out.note(f"warning: {notice}")
    for name, error in loaded.broken.items():
        out.note(f"warning: the server {name} can't be used: {error}")
    if all(one.disabled for one in loaded.servers.values()):
        out.note("no server is set up yet: hotplug server add NAME TARGET; what is added is there at once")
    reload = Reloading(files, loaded, stamp).look
    if http is not None:
        return asyncio.run(_until_told(_http(out, _at(loaded, http), reload)))
    return asyncio.run(_until_told(_stdio(loaded, thread, reload)))


async def _until_told(work: Coroutine[Any, Any, int]) -> int:
    """Run it; a signal ends it in order, which is no failure."""
    import asyncio

    task = asyncio.ensure_future(work)
    told = False

    def stop() -> None:
        nonlocal told
        told = True
        task.cancel()

    loop = asyncio.get_running_loop()
    for one in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows
            loop.add_signal_handler(one, stop)
    try:
        return await task
    except asyncio.CancelledError:
        if told:
            return 0
        raise


async def _http(out: Output, config: GatewayConfig, reload: Reload) -> int:
    from hotplug.gateway.app import Gateway

    async with Gateway(config, reload=reload) as gateway:
        await gateway.check("-")
        await gateway.serve_http(ready=lambda url: _ready(out, gateway, url))
    return 0


def _ready(out: Output, gateway: Gateway, url: str) -> None:
    servers = list(gateway.servers.names())
    out.answer("hotplug.serve/1", {"url": url, "servers": servers}, lambda: url)
    out.note(f"serving {len(servers)} servers at {url}/threads/ID/mcp; `hotplug thread open` opens a thread")


async def _stdio(config: GatewayConfig, thread: str | None, reload: Reload) -> int:
    from hotplug.gateway.app import Gateway

    token = os.environ.get(TOKEN_VARIABLE, "")
    async with Gateway(config, reload=reload) as gateway:
        if thread is None:
            owner = (await gateway.threads.owner()).id
            await gateway.check(owner)
            await gateway.serve_stdio(owner, lambda: gateway.threads.is_open(owner))
            return 0
        if not gateway.threads.authenticate(thread, token):
            raise AuthError(
                f"no thread {thread!r} is open with the token in {TOKEN_VARIABLE}", hint="hotplug thread open gives one"
            )
        await gateway.check(thread)
        await gateway.serve_stdio(thread, lambda: gateway.threads.authenticate(thread, token))
    return 0


def _at(config: GatewayConfig, where: str) -> GatewayConfig:
    from dataclasses import replace

    host, _, port = where.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"--http {where!r} names no port", hint="a port, or HOST:PORT; 0 is any free port")
    return replace(config, port=int(port), host=host.strip("[]") or config.host)
