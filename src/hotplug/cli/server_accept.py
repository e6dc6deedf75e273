"""`hotplug server accept`: what changed in the tools of a server since they were pinned, taken or left."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from hotplug.cli.asking import Asking
from hotplug.cli.failure import Exit
from hotplug.cli.output import Output
from hotplug.cli.printing import block
from hotplug.errors import ConfigError, ConnectError, NotFound

if TYPE_CHECKING:
    from hotplug.gateway.config import GatewayConfig, ServerConfig
    from hotplug.gateway.pins import Checked

__all__ = ["accept"]


async def accept(
    out: Output, config: GatewayConfig, server: ServerConfig, tools: Sequence[str], asking: Asking, *, look: bool
) -> int:
    """Start the server, hold its tools against their pins, and take the changes that are wanted.

    Raises:
        ConnectError: The server can't be reached.
        ConfigError: It has no raw tools that could be pinned; or one that is named isn't there.
    """
    from hotplug.gateway.oauth import OAuthCredentials
    from hotplug.gateway.pins import Pins
    from hotplug.gateway.pool import Pool
    from hotplug.gateway.upstreams import is_native
    from hotplug.store import default_store, open_store

    if is_native(server):
        raise ConfigError(f"{server.name} runs inside the gateway: its tools are a profile's, and aren't pinned")
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(
            open_store(config.store_url) if config.store_url else default_store("gateway")
        )
        credentials = OAuthCredentials(config.secrets)
        pool = await stack.enter_async_context(
            Pool({server.name: server}, secrets=config.secrets, store=store, credentials=credentials)
        )
        pins = Pins(store)
        checked = await pins.check(server.name, await _listed(pool, server))
        for name in tools:
            if name not in checked.tools:
                known = ", ".join(list(checked.tools)[:10]) or "none"
                raise ConfigError(f"{server.name} lists no tool {name!r}", hint=f"it lists: {known}")
        differing = [
            name
            for name, one in checked.tools.items()
            if (one.closed or one.state == "reworded") and (not tools or name in tools)
        ]
        accepted: tuple[str, ...] = ()
        if differing and not look:
            for line in _shown(checked, differing):
                out.note(line)
            question = f"Take {len(differing)} changed tool{'s' if len(differing) != 1 else ''} as shown?"
            if asking.confirm(question, default=asking.yes, flag="--yes"):
                try:
                    accepted = await pins.accept(checked, tools or None)
                except NotFound as error:
                    raise ConfigError(error.message) from None
    left = [name for name in differing if name not in accepted and checked.tools[name].closed]
    body = {
        "server": server.name,
        "tools": [_document(checked, name) for name in differing],
        "accepted": list(accepted),
        "closed": left,
        "gone": list(checked.gone),
        "first": checked.first,
    }
    out.answer("hotplug.server-accept/1", body, lambda: _text(server.name, checked, differing, accepted, left, look))
    return Exit.NO if left else Exit.YES


async def _listed(pool: Any, server: ServerConfig) -> Any:
    from hotplug.errors import Unavailable
    from hotplug.gateway.link import LinkLost
    from hotplug.gateway.upstream import LinkKey

    upstream = pool.upstreams[server.name]
    try:
        link = await upstream.link("legacy", LinkKey("owner", None))
        listing = (await upstream.catalog(link)).tools
    except (Unavailable, LinkLost) as error:
        raise ConnectError(str(error), target=server.name, hint=f"hotplug server test {server.name}") from None
    if listing.problem is not None:
        raise ConnectError(f"{server.name}: the list of its tools is incomplete: {listing.problem}", target=server.name)
    return listing.items


def _document(checked: Checked, name: str) -> dict[str, Any]:
    one = checked.tools[name]
    body: dict[str, Any] = {"name": name, "state": one.state}
    if one.reason:
        body["reason"] = one.reason
    if one.difference is not None:
        body["difference"] = one.difference.as_json()
    return body


def _shown(checked: Checked, names: Sequence[str]) -> list[str]:
    lines: list[str] = []
    for name in names:
        one = checked.tools[name]
        lines.append(f"{name}: {one.reason or 'its wording changed'}")
        if one.difference is not None:
            lines += [f"  {line}" for line in one.difference.words().splitlines()]
    return lines


def _text(
    server: str,
    checked: Checked,
    differing: Sequence[str],
    accepted: Sequence[str],
    left: Sequence[str],
    look: bool,
) -> str:
    lines: list[str] = []
    if look:
        lines += _shown(checked, differing)
    if checked.first:
        lines.append(f"{server}: {len(checked.tools)} tools are pinned as they are now, for the first time")
    elif not differing:
        lines.append(f"{server}: every tool is as it was accepted")
    if accepted:
        lines.append(f"accepted: {', '.join(accepted)}")
    if left:
        lines.append(f"closed until you accept them: {', '.join(left)}")
    lines += [f"gone: {name}" for name in checked.gone]
    return block(lines)
