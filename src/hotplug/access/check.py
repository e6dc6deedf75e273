"""Everything in the settings that means nothing, or not what it seems to."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Final

from hotplug.access.document import ObjectNode
from hotplug.access.findings import Code, Finding
from hotplug.access.host import Host
from hotplug.access.names import (
    BUILT_IN,
    DEFAULT,
    INHERIT,
    PERSON_KEYS,
    PICKS,
    PROFILES,
    PROJECTS,
    SUBAGENT,
    is_thread_id,
    listed,
    near,
    path_text,
    quoted,
    spelled_as,
)
from hotplug.access.patch import PICKS_CAP
from hotplug.access.profiles import Profile
from hotplug.access.settings import MarkerKind, Settings

__all__ = ["check"]

_CODES: Final[dict[MarkerKind, Code]] = {
    "unreadable": "marker",
    "twice": "given_twice",
    "profile": "broken_profile",
    "reserved": "reserved_name",
    "name": "bad_name",
}
_ALMOST: Final = 0.85


def check(settings: Settings, host: Host | None = None) -> tuple[Finding, ...]:
    """What an owner should repair: markers, names without a profile, rules that match nothing (with near names).

    Args:
        settings: As read.
        host: What is there; None where nobody can say, so that servers, groups and tools aren't checked. Its own faults
            are found too.
    """
    found: list[Finding] = []
    if settings.unreadable is not None:
        found.append(Finding("unreadable_file", "the settings", settings.unreadable, "repair the file"))
    found.extend(Finding(_CODES[one.kind], one.setting, one.problem, one.fix) for one in settings.markers)
    found.extend(_odd_keys(settings))
    found.extend(_names(settings))
    found.extend(_threads(settings))
    if host is not None:
        for profile in settings.profiles.values():
            found.extend(_profile(profile, host))
        found.extend(host.check())
    else:
        for profile in settings.profiles.values():
            found.extend(_idle(profile))
    return tuple(found)


def _odd_keys(settings: Settings) -> Iterator[Finding]:
    """Keys that look like ours and aren't: what they say holds for nobody."""
    if settings.document is None or not isinstance(settings.document.root, ObjectNode):
        return
    root = settings.document.root
    yield from _odd((), root.names(), PERSON_KEYS)
    for key, value in root.members:
        if key == PROJECTS and isinstance(value, ObjectNode):
            for project, sets in value.members:
                if isinstance(sets, ObjectNode):
                    yield from _odd((PROJECTS, project), sets.names(), (DEFAULT, SUBAGENT))


def _odd(path: tuple[str, ...], names: Iterable[str], keys: tuple[str, ...]) -> Iterator[Finding]:
    for name in names:
        if name in keys:
            continue
        almost = (one for one in keys if one != PROJECTS and _alike(name, one))
        meant = spelled_as(name, keys) or next(almost, None)
        if meant is not None:
            place = path_text((*path, name))
            yield Finding("odd_key", place, f"{place} is no setting", f"write {meant}", (meant,))


def _alike(name: str, key: str) -> bool:
    return difflib.SequenceMatcher(None, name, key).ratio() >= _ALMOST


def _names(settings: Settings) -> Iterator[Finding]:
    """Names of profiles that nobody has."""
    uses: list[tuple[tuple[str, ...], str | None, bool]] = [
        ((DEFAULT,), settings.default, False),
        ((SUBAGENT,), settings.subagent_default, True),
    ]
    uses.extend(((PICKS, thread), pick, False) for thread, pick in settings.picks.items())
    for name, project in settings.projects.items():
        uses.append(((PROJECTS, name, DEFAULT), project.default, False))
        uses.append(((PROJECTS, name, SUBAGENT), project.subagent_default, True))
    marked = {one.path for one in settings.markers}
    for path, name, inherits in uses:
        if name is None or path in marked or name in settings.profiles or name in settings.broken:
            continue
        place = path_text(path)
        if name == INHERIT:
            if not inherits:
                yield Finding(
                    "inherit_here",
                    place,
                    f'{place} names "inherit", which only the default of sub-agents can be',
                    f"pick a profile, {listed(BUILT_IN)}",
                )
        elif name not in BUILT_IN and PROFILES not in settings.closed:
            close = near(name, (*settings.profiles, *BUILT_IN))
            fix = f"did you mean {listed(close)}?" if close else f"add that profile, or pick {listed(BUILT_IN)}"
            yield Finding("dangling", place, f"{place} names {quoted(name)}, which is not set up", fix, close)


def _threads(settings: Settings) -> Iterator[Finding]:
    for thread in settings.picks:
        if not is_thread_id(thread):
            place = path_text((PICKS, thread))
            fix = "take it out: an id has 1 to 256 characters with no blank at an end"
            yield Finding("bad_thread", place, f"no thread can have the id {quoted(thread)}", fix)
    if len(settings.picks) > PICKS_CAP:
        text = f"there are {len(settings.picks)} picks, of at most {PICKS_CAP}"
        yield Finding("past_the_cap", PICKS, text, "take away those of threads that are gone: no new one can be saved")


def _idle(profile: Profile) -> Iterator[Finding]:
    """Rules for servers that the profile itself leaves out."""
    for server in profile.tools:
        if server not in profile.servers:
            place = path_text((PROFILES, profile.name, "tools", server))
            text = (
                f"{quoted(profile.name)} leaves out the server {quoted(server)}, so the rule for its tools does nothing"
            )
            yield Finding("idle_rule", place, text, f"add {quoted(server)} to its servers, or take the rule out")


def _profile(profile: Profile, host: Host) -> Iterator[Finding]:
    path = (PROFILES, profile.name)
    if isinstance(profile.servers, frozenset):
        for server in sorted(profile.servers - host.servers.keys()):
            yield _unmatched("unknown_server", (*path, "servers"), "server", server, host.servers)
    if isinstance(profile.groups, frozenset):
        for group in sorted(profile.groups - set(host.groups)):
            yield _unmatched("unknown_group", (*path, "groups"), "group", group, host.groups)
    yield from _idle(profile)
    for server, rule in profile.tools.items():
        if server not in host.servers:
            if server in profile.servers:
                yield _unmatched("unknown_server", (*path, "tools", server), "server", server, host.servers)
            continue
        for part, names in (("allow", rule.allow), ("deny", rule.deny)):
            if isinstance(names, frozenset):
                for tool in sorted(names):
                    if not host.offers(server, tool):
                        place = (*path, "tools", server, part)
                        yield _unmatched("unknown_tool", place, f"tool of {quoted(server)}", tool, host.servers[server])


def _unmatched(code: Code, path: tuple[str, ...], what: str, name: str, known: Iterable[str]) -> Finding:
    close = near(name, known)
    place = path_text(path)
    fix = f"did you mean {listed(close)}?" if close else "take it out, or set it up"
    return Finding(code, place, f"{place} names the {what} {quoted(name)}, which matches nothing", fix, close)
