"""`hotplug server login` and `hotplug server logout`: OAuth at remote servers, with a person at a browser."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit

import typer

from hotplug.cli.command import command
from hotplug.cli.config_option import ConfigOption, configuration
from hotplug.cli.failure import Exit
from hotplug.cli.output import Output
from hotplug.errors import ConfigError

if TYPE_CHECKING:
    from hotplug.gateway.config import GatewayConfig, ServerConfig
    from hotplug.gateway.oauth.kept import Login, LoginKeeper
    from hotplug.gateway.oauth.login import LoggedOut

__all__ = ["hook"]

_OPENING: Final = 2.0


def hook(app: typer.Typer) -> None:
    """Add both verbs to `hotplug server`."""
    command(app, "login")(login)
    command(app, "logout")(logout)


def login(
    out: Output,
    name: Annotated[str, typer.Argument(help="The server's name.", show_default=False)],
    config: ConfigOption = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open your browser, or only say the address.")
    ] = True,
    scope: Annotated[
        list[str] | None,
        typer.Option(help="What to ask for. [default: what the entry or the server names]", show_default=False),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds that you have in the browser.", min=1.0)] = 300.0,
) -> int:
    """Log in at a remote server that asks for OAuth. You decide in your browser; the gateway keeps what comes of it.

    The browser has to run on this machine: it comes back to 127.0.0.1. What is kept is renewed by the gateway, until
    the server wants you to log in again. A gateway that is running takes it without being started again.

    Exit codes: 0 logged in, 3 denied, not in time or not possible there, 4 a server can't be reached.
    """
    found = configuration(out, config, warn=False)
    server = _server(found, name)
    if not server.oauth:
        raise ConfigError(f"{name} doesn't ask for OAuth by its entry", hint=f"oauth = true in [servers.{name}]")
    done, keeper = asyncio.run(_log_in(out, found, server, tuple(scope or ()), browser=browser, limit=timeout))
    body = _document(done, keeper)
    out.answer("hotplug.server-login/1", body, lambda: _logged_in(done, keeper))
    return Exit.YES


async def _log_in(
    out: Output, found: GatewayConfig, server: ServerConfig, scopes: tuple[str, ...], *, browser: bool, limit: float
) -> tuple[Login, LoginKeeper]:
    from hotplug.gateway.oauth.login import log_in

    async def show(address: str) -> None:
        if browser and await asyncio.to_thread(_opened, address):
            out.note(f"your browser is at {urlsplit(address).netloc}; if it isn't, open this address in it:\n{address}")
        else:
            out.note(f"open this address in a browser on this machine:\n{address}")

    return await log_in(server, found.secrets, show=show, scopes=scopes, limit=limit)


def _opened(address: str) -> bool:
    """Whether a browser was opened. Some stay until they are closed: that is waited for by nobody."""
    import queue
    import threading
    import webbrowser

    answer: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def open_it() -> None:
        try:
            answer.put(webbrowser.open(address))
        except (webbrowser.Error, OSError):
            answer.put(False)

    threading.Thread(target=open_it, daemon=True).start()
    try:
        return answer.get(timeout=_OPENING)
    except queue.Empty:
        return True


def _server(found: GatewayConfig, name: str) -> ServerConfig:
    from hotplug.cli.doctor_gateway import pick

    if name in found.broken:
        raise found.broken[name]
    pick(found, name)
    return found.servers[name]


def _document(done: Login, keeper: LoginKeeper) -> dict[str, Any]:
    ends = None if done.expires_at is None else datetime.fromtimestamp(done.expires_at, UTC)
    return {
        "name": done.server,
        "url": done.url,
        "kept": keeper.where,
        "scopes": list(done.scopes),
        "expiresAt": None if ends is None else ends.isoformat(timespec="seconds"),
        "renewable": done.renewable,
    }


def _logged_in(done: Login, keeper: LoginKeeper) -> str:
    lines = [f"you are logged in at {done.server}; it is kept in {keeper.where}"]
    if done.scopes:
        lines.append(f"  scopes: {', '.join(done.scopes)}")
    if done.expires_at is not None:
        ends = datetime.fromtimestamp(done.expires_at, UTC).isoformat(sep=" ", timespec="minutes")
        lines.append("  renewed by itself" if done.renewable else f"  until {ends}; nothing renews it")
    return "\n".join([*lines, f"next: hotplug server test {done.server}"])


def logout(
    out: Output,
    name: Annotated[str, typer.Argument(help="The server's name.", show_default=False)],
    config: ConfigOption = None,
) -> int:
    """Log out: what is kept is revoked where the server can, and removed in any case.

    Logins at a server that isn't set up any more, or at an address that it had before, are removed too.

    Exit codes: 0 logged out, 1 nobody was logged in.
    """
    found = configuration(out, config, warn=False)
    done = asyncio.run(_log_out(found, name))
    if done.problem is not None:
        out.note(f"warning: {name}: it couldn't be revoked: {done.problem}")
    body = {"name": name, "was": done.was, "revoked": done.revoked, "problem": done.problem}
    out.answer("hotplug.server-logout/1", body, lambda: _logged_out(name, done))
    return Exit.YES if done.was else Exit.NO


async def _log_out(found: GatewayConfig, name: str) -> LoggedOut:
    from dataclasses import replace

    from hotplug.gateway.oauth import logins_of
    from hotplug.gateway.oauth.address import address_of
    from hotplug.gateway.oauth.login import LoggedOut, log_out

    server = found.servers.get(name)
    done = LoggedOut(False)
    if server is not None and address_of(server) is not None:
        done = await log_out(server, found.secrets)
    elif server is None and name not in found.broken and not logins_of(name):
        _server(found, name)
    for path, _ in logins_of(name):
        # At another address: who gave them may be anybody by now.
        path.unlink(missing_ok=True)
        done = replace(done, was=True)
    return done


def _logged_out(name: str, done: LoggedOut) -> str:
    if not done.was:
        return f"nobody was logged in at {name}"
    return f"you are logged out at {name}" + ("; it is revoked there" if done.revoked else "")
