"""One save: a patch that is applied whole or not at all.

Maps are patched entry by entry, so that two windows that save different entries both keep theirs. Only what is new or
changed is checked, so an old odd value never blocks an unrelated save; what comes back as it was read (a marker too)
is unchanged, and its original stays.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Final, Literal

from hotplug.access.document import Document, Node, NullNode, ObjectNode, TextNode, node_of, same
from hotplug.access.errors import AccessError
from hotplug.access.host import Host
from hotplug.access.names import (
    BUILT_IN,
    DEFAULT,
    INHERIT,
    PERSON_KEYS,
    PICKS,
    PROFILES,
    PROJECTS,
    RESERVED,
    SUBAGENT,
    is_profile_name,
    is_thread_id,
    listed,
    near,
    path_text,
    quoted,
    spelled_as,
)
from hotplug.access.profiles import Fault, Profile, fault_text, read_profile
from hotplug.access.settings import TWICE, Settings, marker_text, settings_of

__all__ = ["PICKS_CAP", "PatchRefused", "Role", "apply_patch", "profile_uses", "prune_picks"]

Role = Literal["person", "agent"]

PICKS_CAP: Final = 500
"""Picks that the settings hold at most. A further one is refused: to drop another would widen a live thread."""

_NAMES: Final = (DEFAULT, SUBAGENT)
_MAPS: Final = (PROFILES, PICKS, PROJECTS)
_ALMOST: Final = 0.9
_BUILT_IN: Final = listed(BUILT_IN)


class PatchRefused(AccessError):
    """A save that is refused; nothing of it may be written.

    Args:
        setting: What it is about, as a person writes the path.
        message: What is wrong with it.
        fix: What to do.
        others: What else is wrong with the same patch.
    """

    def __init__(self, setting: str, message: str, fix: str, others: tuple[PatchRefused, ...] = ()) -> None:
        self.setting = setting
        self.message = message
        self.fix = fix
        self.others = others
        more = f" (and {len(others)} more)" if others else ""
        super().__init__(f"{message}: {fix}{more}")


def apply_patch(
    document: Document | None,
    patch: Mapping[str, object] | Document | Node,
    *,
    role: Role,
    agent_writable: Collection[str] = frozenset(),
    host: Host | None = None,
    now_unused: Collection[str] = (),
) -> Document:
    """The document with the patch applied; the same object where nothing changes.

    Args:
        document: The settings as they are now; None where there is no file.
        patch: Key → new value; null takes one away. In the maps (`mcpProfiles`, `mcpThreadProfiles`, `projects`, and
            each project in it) entry by entry; a profile and a key of somebody else's are replaced whole.
        role: Who saves. An agent's own call may write the keys of `agent_writable` and no other.
        agent_writable: Keys beside those of this page, which stay the person's.
        host: What is there, for the names of groups; None where nobody can say, so that groups aren't checked.
        now_unused: Threads that the host says nobody uses now, to name one where the picks are full.

    Raises:
        PatchRefused: with the setting and the fix.
        AccessError: `agent_writable` names a key of the person's, or the document is no object.
    """
    for key in agent_writable:
        if spelled_as(key):
            raise AccessError(f"{key} is a person's key: it can't be on the list that agents may write")
    if document is None:
        document = Document()
    if not isinstance(document.root, ObjectNode):
        raise AccessError(f"the settings hold a {document.root.kind}, not an object: repair the file first")
    try:
        node = node_of(patch)
    except AccessError as error:
        raise PatchRefused("the patch", "the patch is no JSON", str(error)) from None
    work = _Patch(document, document.root, node, host, now_unused)
    if role != "person":
        work.guard(agent_writable)
    return work.applied()


def prune_picks(document: Document, gone: Collection[str]) -> Document:
    """Without the picks of threads that no longer exist, on the host's word alone; the same object where none goes.

    Args:
        document: The settings as they are now.
        gone: Threads that are closed for good: their ids never come back.
    """
    if not isinstance(document.root, ObjectNode):
        return document
    picks = document.root.values(PICKS)
    if len(picks) != 1 or not isinstance(picks[0], ObjectNode):
        return document
    names = {one.strip() for one in gone}
    kept = tuple(member for member in picks[0].members if member[0].strip() not in names)
    if len(kept) == len(picks[0].members):
        return document
    return replace(document, root=document.root.having(PICKS, replace(picks[0], members=kept)))


def profile_uses(settings: Settings, name: str) -> tuple[str, ...]:
    """Where the settings use a profile, as paths: `mcpProfile`, `mcpThreadProfiles.t1`, `projects.acme.mcpProfile`."""
    found: list[tuple[str, ...]] = []
    if settings.default == name:
        found.append((DEFAULT,))
    if settings.subagent_default == name:
        found.append((SUBAGENT,))
    found.extend((PICKS, thread) for thread, pick in settings.picks.items() if pick == name)
    for project, sets in settings.projects.items():
        if sets.default == name:
            found.append((PROJECTS, project, DEFAULT))
        if sets.subagent_default == name:
            found.append((PROJECTS, project, SUBAGENT))
    return tuple(path_text(path) for path in found)


class _Patch:
    """One patch on its way into one document; gathers what is wrong with it."""

    def __init__(
        self, document: Document, root: ObjectNode, patch: Node, host: Host | None, now_unused: Collection[str]
    ) -> None:
        self.document = document
        self.old = root
        self.root = root
        self.host = host
        self.now_unused = now_unused
        self.refusals: list[PatchRefused] = []
        self.checks: list[Callable[[Settings], None]] = []  # what can be judged only when all is in
        self.removed: list[str] = []  # profiles
        self.added_picks: list[str] = []
        if not isinstance(patch, ObjectNode):
            raise PatchRefused("the patch", f"the patch is a {patch.kind}", "write an object: setting → value")
        if patch.twice():
            key = path_text((patch.twice()[0],))
            raise PatchRefused(key, f"{key} is given twice in the patch", "leave one")
        self.patch = patch

    def guard(self, agent_writable: Collection[str]) -> None:
        """Refuses every key that an agent may not write."""
        for key, _ in self.patch.members:
            if key not in agent_writable:  # which holds none of the person's keys
                person, place = spelled_as(key), path_text((key,))
                owns = f"{place} spells {person}, which" if person not in (None, key) else place
                self._refuse((key,), f"{owns} can be written only by a person", "ask the owner to set it")
        self._raise()

    def applied(self) -> Document:
        for key, value in self.patch.members:
            if key in _NAMES:
                self.root = self._name(self.root, (key,), value)
            elif key in _MAPS:
                self._map(key, value)
            else:
                self._other(key, value)
        if self.root is self.old:
            self._raise()
            return self.document
        document = replace(self.document, root=self.root)
        settings = settings_of(document)
        for check in self.checks:
            check(settings)
        self._check_removed(settings)
        self._check_cap(settings)
        self._raise()
        return document

    def _raise(self) -> None:
        if self.refusals:
            first, *others = self.refusals
            raise PatchRefused(first.setting, first.message, first.fix, tuple(others))

    def _refuse(self, path: tuple[str, ...], message: str, fix: str) -> None:
        self.refusals.append(PatchRefused(path_text(path), message, fix))

    def _other(self, key: str, value: Node) -> None:
        """A key that isn't of this page: the host's own."""
        current = self.root.values(key)
        if isinstance(value, NullNode):
            if current:
                self.root = self.root.without(key)
            return
        if len(current) == 1 and same(current[0], value):
            return
        spelled = spelled_as(key) or self._almost(key)
        if spelled is not None and not current:
            self._refuse((key,), f"{path_text((key,))} is no setting", f"write {spelled}")
            return
        self.root = self.root.having(key, value)

    def _almost(self, key: str) -> str | None:
        keys = [one for one in PERSON_KEYS if one != PROJECTS]
        return next((one for one in keys if difflib.SequenceMatcher(None, key, one).ratio() >= _ALMOST), None)

    def _name(self, node: ObjectNode, path: tuple[str, ...], value: Node) -> ObjectNode:
        """A node with a default set: `mcpProfile` or `mcpSubagentProfile`, at the top or in a project."""
        key = path[-1]
        current = node.values(key)
        if _as_read(current, value):
            return node
        if isinstance(value, NullNode):
            return node.without(key) if current else node
        self._check_name(path, value, inherit=key == SUBAGENT)
        return node.having(key, value)

    def _check_name(self, path: tuple[str, ...], value: Node, *, inherit: bool) -> None:
        place = path_text(path)
        if not isinstance(value, TextNode):
            self._refuse(path, f"{place} is a {value.kind}", f"write the name of a profile, {_BUILT_IN}")
        elif not value.value.strip():
            self._refuse(path, f"{place} is blank", "write the name of a profile, or null for not set")
        elif value.value == INHERIT and not inherit:
            fix = f"pick a profile, {_BUILT_IN}"
            self._refuse(path, f'{place} names "inherit", which only the default of sub-agents can be', fix)
        else:
            name = value.value
            self.checks.append(lambda settings: self._check_there(settings, path, name))

    def _check_there(self, settings: Settings, path: tuple[str, ...], name: str) -> None:
        names = f"{path_text(path)} names {quoted(name)}"
        if PROFILES in settings.closed:
            self._refuse(path, f"{names}, and {settings.closed[PROFILES].problem}", "repair mcpProfiles first")
        elif name in settings.broken:
            self._refuse(
                path, f"{names}, which can't be used ({settings.broken[name].problem})", settings.broken[name].fix
            )
        elif name not in RESERVED and name not in settings.profiles:
            close = near(name, settings.profiles)
            hint = f" (did you mean {listed(close)}?)" if close else ""
            self._refuse(path, f"{names}, which is not set up", f"add that profile first, or pick {_BUILT_IN}{hint}")

    def _map(self, key: str, value: Node) -> None:
        current = self.root.values(key)
        entries = current[0] if len(current) == 1 else None
        if current and not isinstance(entries, ObjectNode | NullNode):
            if isinstance(value, NullNode):
                self.root = self.root.without(key)
            elif not _as_read(current, value):
                seen = TWICE if len(current) > 1 else marker_text(current[0])
                self._refuse(
                    (key,),
                    f"{key} is {seen} in the file, and what stands there may have been a limit",
                    "repair it in the file, or take it away with null first",
                )
            return
        if isinstance(value, NullNode):
            if isinstance(entries, ObjectNode) and entries.members:
                self._refuse((key,), f"{key} is null", "name the entries to take away, each with null")
            elif current:
                self.root = self.root.without(key)
            return
        if not isinstance(value, ObjectNode):
            self._refuse((key,), f"{key} is a {value.kind}", "write an object: entry → value, null to take one away")
            return
        old = entries if isinstance(entries, ObjectNode) else ObjectNode()
        new = self._entries(key, old, value)
        if new is not old:
            self.root = self.root.having(key, new)

    def _entries(self, key: str, old: ObjectNode, patch: ObjectNode) -> ObjectNode:
        change = {PROFILES: self._profile, PICKS: self._pick, PROJECTS: self._project}[key]
        for name in patch.twice():
            self._refuse((key, name), f"{path_text((key, name))} is given twice in the patch", "leave one")
        node = old
        for name, value in patch.members:
            # Projects and threads are looked up without the blanks at their ends, so they are patched that way.
            names = [one for one in node.names() if one == name or (key != PROFILES and one.strip() == name.strip())]
            current = [one for spelling in names for one in node.values(spelling)]
            if isinstance(value, NullNode):
                if current and key == PROFILES:
                    self.removed.append(name)
                for one in names:
                    node = node.without(one)
            elif not _as_read(current, value):
                new = change((key, name), current, value)
                if not current:
                    node = node.having(name, new)
                elif new is not current[0]:
                    for one in names[1:]:
                        node = node.without(one)
                    node = _renamed(node, names[0], name, new)
        return node

    def _profile(self, path: tuple[str, ...], current: list[Node], value: Node) -> Node:
        name, place = path[-1], path_text(path)
        if name in RESERVED:
            what = "is a built-in profile" if name in BUILT_IN else "means the default"
            self._refuse(path, f"{quoted(name)} {what}, so no profile can be called that", "give it another name")
        elif not is_profile_name(name):
            self._refuse(path, f"no profile can be called {quoted(name)}", "use 1 to 64 of a-z, 0-9, - and _")
        found = read_profile(name, value)
        if isinstance(found, Fault):
            self._refuse((*path, *found.path), fault_text(path, found), found.fix)
            return value
        before = read_profile(name, current[0]) if len(current) == 1 else None
        self._check_groups(path, found, before if isinstance(before, Profile) else None)
        for server, part in _server_names(found):
            if self.host is not None and server in self.host.servers:
                continue
            if server != server.strip():
                self._refuse(
                    (*path, part), f"{place} names {quoted(server)}, with blanks at an end", "write it without them"
                )
            elif "*" in server:
                fix = 'write each name, or "all"'
                self._refuse((*path, part), f"{place} names {quoted(server)}: names are matched exactly", fix)
        return value

    def _check_groups(self, path: tuple[str, ...], found: Profile, before: Profile | None) -> None:
        if self.host is None or not isinstance(found.groups, frozenset):
            return
        old = before.groups if before is not None and isinstance(before.groups, frozenset) else frozenset[str]()
        for group in sorted(found.groups - set(self.host.groups) - old):
            close = near(group, self.host.groups)
            known = f"the groups are {listed(self.host.groups, last='and')}" if self.host.groups else "there is none"
            fix = f"did you mean {listed(close)}?" if close else known
            self._refuse((*path, "groups"), f"{path_text(path)} names the group {quoted(group)}, which is unknown", fix)

    def _pick(self, path: tuple[str, ...], current: list[Node], value: Node) -> Node:
        if not is_thread_id(path[-1]):
            fix = "use 1 to 256 characters with no blank at an end"
            self._refuse(path, f"no thread can have the id {quoted(path[-1])}", fix)
        if not any(_counts(one) for one in current):
            self.added_picks.append(path[-1])
        self._check_name(path, value, inherit=False)
        return value

    def _project(self, path: tuple[str, ...], current: list[Node], value: Node) -> Node:
        if not path[-1].strip():
            self._refuse(path, "a project has a blank name", "write its name")
        if not isinstance(value, ObjectNode):
            self._refuse(path, f"{path_text(path)} is a {value.kind}", "write an object, or null to take it away")
            return value
        for key in value.twice():
            self._refuse((*path, key), f"{path_text((*path, key))} is given twice in the patch", "leave one")
        old = current[0] if len(current) == 1 else None
        node = old if isinstance(old, ObjectNode) else ObjectNode()
        for key, item in value.members:
            if key in _NAMES:
                node = self._name(node, (*path, key), item)
            elif len(node.values(key)) == 1 and same(node.values(key)[0], item):
                continue
            elif isinstance(item, NullNode):
                node = node.without(key) if node.values(key) else node
            else:
                spelled = spelled_as(key, _NAMES)
                if spelled is not None and not node.values(key):
                    self._refuse((*path, key), f"{path_text((*path, key))} is no setting", f"write {spelled}")
                node = node.having(key, item)
        return node

    def _check_removed(self, settings: Settings) -> None:
        for name in self.removed:
            uses = profile_uses(settings, name) if name not in RESERVED else ()
            if uses:
                shown = ", ".join(uses[:20]) + (f" and {len(uses) - 20} more" if len(uses) > 20 else "")
                self._refuse(
                    (PROFILES, name),
                    f"{path_text((PROFILES, name))} is in use, by {shown}",
                    "pick another profile there first, or in the same save",
                )

    def _check_cap(self, settings: Settings) -> None:
        picks = settings.picks
        if len(picks) <= PICKS_CAP or not self.added_picks:
            return
        before = [thread for thread in picks if thread not in self.added_picks]
        unused = {one.strip() for one in self.now_unused}
        oldest = next((thread for thread in before if thread in unused), None)
        if oldest is not None:
            fix = f"take one away first (null); the oldest unused is {quoted(oldest)}"
        elif before:
            fix = (
                "take one away first (null), or have the host say which threads are gone; the host names no unused "
                f"one, the oldest is {quoted(before[0])}"
            )
        else:
            fix = "save fewer"
        place = (PICKS, self.added_picks[0])
        self._refuse(
            place, f"{path_text(place)} would be pick {len(picks)} of at most {PICKS_CAP}: none is dropped for it", fix
        )


def _as_read(current: list[Node], value: Node) -> bool:
    """Whether a value is the one in the file, or what that reads as: a trimmed text, a marker."""
    if not current:
        return False
    if len(current) > 1:
        return isinstance(value, TextNode) and value.value == TWICE
    if same(current[0], value):
        return True
    if not isinstance(value, TextNode):
        return False
    if isinstance(current[0], TextNode):
        return current[0].value.strip() == value.value
    return value.value == marker_text(current[0])


def _counts(node: Node) -> bool:
    """Whether an entry of the picks is one: null and blank aren't."""
    return bool(node.value.strip()) if isinstance(node, TextNode) else not isinstance(node, NullNode)


def _renamed(node: ObjectNode, old: str, new: str, value: Node) -> ObjectNode:
    found = node.having(old, value)
    if old == new:
        return found
    return replace(found, members=tuple((new if name == old else name, item) for name, item in found.members))


def _server_names(profile: Profile) -> list[tuple[str, str]]:
    """Every server that a profile names, with the part that names it."""
    found = [(name, "servers") for name in sorted(profile.servers)] if isinstance(profile.servers, frozenset) else []
    return found + [(name, "tools") for name in profile.tools]
