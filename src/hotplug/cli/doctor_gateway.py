"""The gateway's servers looked at, and what each thread would get of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hotplug.cli.doctor_servers import Broken, Examined, Gets, examine
from hotplug.cli.output import Output
from hotplug.cli.printing import did_you_mean
from hotplug.cli.targets import Given, given_config
from hotplug.errors import ConfigError

if TYPE_CHECKING:
    from hotplug.access import Access, Host, Refused, Settings, Thread
    from hotplug.gateway.config import GatewayConfig

__all__ = ["all_of", "examine_gateway", "gets_of", "pick"]

_NEW = "a new thread"
_DELEGATED = "a sub-agent"
_FEW = 5


def all_of(config: GatewayConfig) -> list[Given | Broken]:
    """Every server of a configuration, the broken ones too."""
    return [*(_given(config, name) for name in config.servers), *(_broken(config, name) for name in config.broken)]


def pick(config: GatewayConfig, name: str) -> Given | Broken:
    """One server of a configuration, also where it is disabled.

    Raises:
        ConfigError: There is none of that name.
    """
    if name in config.broken:
        return _broken(config, name)
    if name in config.servers:
        found = _given(config, name)
        return replace(found, disabled=False) if isinstance(found, Given) else found
    known = [*config.servers, *config.broken]
    raise ConfigError(
        f"{config.path or 'the configuration'} has no server {name!r}",
        hint=did_you_mean(name, known) or f"it has: {', '.join(known) or 'no servers'}",
    )


def _given(config: GatewayConfig, name: str) -> Given | Broken:
    try:
        return given_config(config.servers[name], config)
    except ConfigError as error:
        return Broken(name, str(config.servers[name].file or ""), error)


def _broken(config: GatewayConfig, name: str) -> Broken:
    return Broken(name, str(config.path or ""), config.broken[name])


async def examine_gateway(
    out: Output, config: GatewayConfig, servers: Sequence[Given | Broken], limit: float | None
) -> tuple[Examined, ...]:
    """Look at servers of a configuration, and say what threads would get of each.

    Args:
        limit: Seconds for each server, in place of what its entry says.
    """
    if limit is not None:
        servers = [replace(one, limit=limit) if isinstance(one, Given) else one for one in servers]
    examined = await examine(servers, limit=limit or 60.0, progress=out.progress)
    gets = await _all_gets(out, config, examined)
    return tuple(replace(one, gets=gets.get(one.label, ())) for one in examined)


async def _all_gets(out: Output, config: GatewayConfig, examined: Sequence[Examined]) -> Mapping[str, tuple[Gets, ...]]:
    from hotplug.access import Host
    from hotplug.errors import StoreError
    from hotplug.store.settings import SettingsFile

    if config.settings is None:
        return {}
    host = Host({one.label: one.looked.tools for one in examined if one.looked is not None})
    try:
        looked = SettingsFile(config.settings).look()
    except StoreError as error:
        out.note(f"warning: {error}")
        return {}
    if looked.problem is not None:
        out.note(f"warning: {looked.problem}")
    return gets_of(config, looked.settings, host, await _open_threads(out, config))


async def _open_threads(out: Output, config: GatewayConfig) -> Mapping[str, Thread]:
    """The threads that are open in the gateway's store; none where there is no store yet, or none that can be read."""
    from hotplug.cli.gateway_store import open_existing
    from hotplug.errors import StoreError
    from hotplug.gateway.threads import Threads

    try:
        store = open_existing(out, config.store_url, config.path)
        if store is None:
            return {}
        async with store, Threads.over(store) as threads:
            return {one.id: found for one in threads.list() if (found := threads.lineage().get(one.id)) is not None}
    except (StoreError, ConfigError) as error:
        out.note(f"warning: {error}")
        return {}


def gets_of(
    config: GatewayConfig, settings: Settings, host: Host, threads: Mapping[str, Thread] | None = None
) -> Mapping[str, tuple[Gets, ...]]:
    """What a new thread, a new sub-agent, each picked and each open thread would get, by server. Pure.

    Args:
        threads: The open ones, by id.
    """
    from hotplug.access import Access, Thread, resolve

    lineage = {**(threads or {}), _NEW: Thread(_NEW), _DELEGATED: Thread(_DELEGATED, parent=_NEW, delegated=True)}
    for thread in settings.picks:
        lineage.setdefault(thread, Thread(thread))
    found: dict[str, Access | Refused] = {}
    for thread in (_NEW, _DELEGATED, *(one for one in lineage if one not in (_NEW, _DELEGATED))):
        access = resolve(settings, thread, lineage, host)
        if isinstance(access, Access):
            for one in config.narrowing:
                access = access.narrowed(one.profile, str(one.path))
        found[thread] = access
    return {server: _gets(server, host, found) for server in host.servers}


def _gets(server: str, host: Host, found: Mapping[str, Access | Refused]) -> tuple[Gets, ...]:
    from hotplug.access import Access

    tools = host.servers[server]
    same: dict[tuple[int, str | None], list[str]] = {}
    for thread, access in found.items():
        given = access.tools_of(server) if isinstance(access, Access) else ()
        reason = None
        if len(given) < len(tools):
            missing = next(tool for tool in tools if tool not in given)
            reason = access.allows(server, missing).reason
        same.setdefault((len(given), reason), []).append(thread)
    return tuple(Gets(_few(threads), count, len(tools), reason) for (count, reason), threads in same.items())


def _few(threads: Sequence[str]) -> tuple[str, ...]:
    if len(threads) <= _FEW + 1:
        return tuple(threads)
    return (*threads[:_FEW], f"{len(threads) - _FEW} more")
