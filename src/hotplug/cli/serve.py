"""`hotplug serve`: the gateway, over standard streams for one client or over HTTP for any number of threads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotplug.cli.command import command, group
from hotplug.cli.output import Output
from hotplug.errors import AuthError, ConfigError
from hotplug.gateway.tokens import TOKEN_VARIABLE

if TYPE_CHECKING:
    from hotplug.gateway.app import Gateway
    from hotplug.gateway.config import GatewayConfig

app = group("One MCP server in front of all of yours.")


@command(app, "serve")
def serve(
    out: Output,
    config: Annotated[
        Path | None, typer.Option(help="The file to serve, in place of your own hotplug.toml.", show_default=False)
    ] = None,
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

    Exit codes: 0 the client left or a signal came, 2 the configuration can't be used, 3 the token is no open thread's.
    """
    import asyncio

    from hotplug.gateway.trust import load_config

    if http is not None and thread is not None:
        raise ConfigError("--thread is for standard streams", hint="over HTTP a request's path names its thread")
    loaded = load_config(config, start=Path.cwd())
    if loaded.path is not None:
        out.used(f"configuration {loaded.path}")
    for notice in loaded.warnings:
        out.note(f"warning: {notice}")
    for name, error in loaded.broken.items():
        out.note(f"warning: the server {name} can't be used: {error}")
    if http is not None:
        return asyncio.run(_http(out, _at(loaded, http)))
    return asyncio.run(_stdio(loaded, thread))


async def _http(out: Output, config: GatewayConfig) -> int:
    from hotplug.gateway.app import Gateway

    async with Gateway(config) as gateway:
        await gateway.serve_http(ready=lambda url: _ready(out, gateway, url))
    return 0


def _ready(out: Output, gateway: Gateway, url: str) -> None:
    servers = list(gateway.servers.names())
    out.answer("hotplug.serve/1", {"url": url, "servers": servers}, lambda: url)
    out.note(f"serving {len(servers)} servers at {url}/threads/ID/mcp; `hotplug thread open` opens a thread")


async def _stdio(config: GatewayConfig, thread: str | None) -> int:
    from hotplug.gateway.app import Gateway

    token = os.environ.get(TOKEN_VARIABLE, "")
    async with Gateway(config) as gateway:
        if thread is None:
            owner = (await gateway.threads.owner()).id
            await gateway.serve_stdio(owner, lambda: gateway.threads.is_open(owner))
            return 0
        if not gateway.threads.authenticate(thread, token):
            raise AuthError(
                f"no thread {thread!r} is open with the token in {TOKEN_VARIABLE}", hint="hotplug thread open gives one"
            )
        await gateway.serve_stdio(thread, lambda: gateway.threads.authenticate(thread, token))
    return 0


def _at(config: GatewayConfig, where: str) -> GatewayConfig:
    from dataclasses import replace

    host, colon, port = where.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"--http {where!r} names no port", hint="a port, or HOST:PORT; 0 is any free port")
    return replace(config, port=int(port), host=host.strip("[]") if colon else config.host)
