"""From settings and a lineage to what one thread gets: pure and total, and every doubt closes.

The owner's pick for a thread is final. Else the default of its role applies, cut down to what its parent has, up the
lineage to a thread with a pick or to the root.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hotplug.access.granted import Access, Layer, Refused, Step
from hotplug.access.host import Host
from hotplug.access.lineage import DEEPEST, Thread
from hotplug.access.names import (
    ALL,
    BUILT_IN,
    DEFAULT,
    INHERIT,
    PICKS,
    PROFILES,
    PROJECTS,
    SUBAGENT,
    is_profile_name,
    listed,
    near,
    path_text,
    quoted,
)
from hotplug.access.profiles import ALL_PROFILE, HOST_ONLY_PROFILE, Profile
from hotplug.access.settings import Project, Settings

__all__ = ["resolve"]

_BUILT_IN = {ALL_PROFILE.name: ALL_PROFILE, HOST_ONLY_PROFILE.name: HOST_ONLY_PROFILE}
_PICK = f"pick a profile for this thread, {listed(BUILT_IN)}"


class _No(NamedTuple):
    """Why a thread of the lineage gets nothing."""

    code: str
    reason: str
    fix: str
    setting: str | None = None


class _Named(NamedTuple):
    """The name of a profile, and the setting that it comes from."""

    name: str
    setting: str


def resolve(settings: Settings, thread_id: str, lineage: Mapping[str, Thread], host: Host) -> Access | Refused:
    """What a thread gets. Always answers; a thread that isn't in the lineage is refused."""
    return _Resolving(settings, thread_id, lineage).answer(host)


class _Resolving:
    def __init__(self, settings: Settings, thread_id: str, lineage: Mapping[str, Thread]) -> None:
        self.settings = settings
        self.thread_id = thread_id
        self.lineage = lineage
        self.at = thread_id
        self.steps: list[Step] = []
        self.layers: dict[str, Layer] = {}

    def answer(self, host: Host) -> Access | Refused:
        if self.settings.refuses_all:
            why = f"the settings file can't be read ({self.settings.unreadable}), and there is no good copy"
            return self._refused(self.thread_id, _No("unreadable_settings", why, "repair the file"))
        thread = self.lineage.get(self.thread_id)
        if thread is None:
            fix = "open the thread first"
            return self._refused(
                self.thread_id, _No("unknown_thread", f"no thread {quoted(self.thread_id)} is known", fix)
            )
        name, seen = self.thread_id, {self.thread_id}
        while True:
            found = self._named(name, thread)
            if isinstance(found, _No):
                return self._refused(name, found)
            picked, named = found
            profile = self._profile(named)
            if isinstance(profile, _No):
                return self._refused(name, profile)
            # A profile that is there already cuts nothing more.
            self.layers.setdefault(profile.name, Layer(name, named.setting, profile))
            if picked or thread.parent is None:
                return self._access(host)
            parent = self._parent(name, thread.parent, seen)
            if isinstance(parent, _No):
                # A parent that isn't known is one thread's fault; a loop or a depth is the whole lineage's.
                return self._refused(name if parent.code == "unknown_parent" else self.thread_id, parent)
            self._step(name, "cut", f"as a child of {quoted(thread.parent)} it is cut down to what that has")
            name = self.at = thread.parent
            thread = parent
            seen.add(name)

    def _parent(self, name: str, parent: str, seen: set[str]) -> Thread | _No:
        if parent in seen:
            reason = f"the lineage is a loop: {quoted(parent)} is above itself"
            return _No("loop", reason, f"{_PICK}, or repair the lineage")
        if len(seen) > DEEPEST:
            return _No("too_deep", f"the lineage is over {DEEPEST} deep", f"{_PICK}, or open one nearer to the root")
        thread = self.lineage.get(parent)
        if thread is None:
            return _No("unknown_parent", f"the parent of {quoted(name)}, {quoted(parent)}, is not known", _PICK)
        return thread

    def _named(self, name: str, thread: Thread) -> tuple[bool, _Named] | _No:
        """What names the thread's profile, and whether that is the owner's pick."""
        key = name.strip()
        closed = self.settings.closed.get(PICKS)
        if closed is not None:
            reason = f"{closed.problem}, and a pick for {quoted(name)} may have stood there"
            return _No("unreadable_map", reason, closed.fix, PICKS)
        pick = self.settings.picks.get(key)
        if pick is not None:
            place = path_text((PICKS, key))
            self._step(name, "pick", f"the owner picked {quoted(pick)} for it, which is final", place, pick)
            return True, _Named(pick, place)
        self._step(name, "no-pick", "the owner made no pick for it")
        if thread.delegated and thread.parent is None:
            return _No("unknown_parent", f"{quoted(name)} is a sub-agent, and nobody says whose", _PICK)
        project = self._project(thread)
        if isinstance(project, _No):
            return project
        named = self._role(thread, project)
        return named if isinstance(named, _No) else (False, named)

    def _project(self, thread: Thread) -> Project | _No:
        if thread.project is None or not thread.project.strip():
            return Project()
        key = thread.project.strip()
        closed = self.settings.closed.get(PROJECTS)
        if closed is not None:
            reason = f"{closed.problem}, and a limit for {quoted(key)} may have stood there"
            return _No("unreadable_map", reason, closed.fix, PROJECTS)
        project = self.settings.projects.get(key, Project())
        if project.marker is not None:
            return _No("unreadable_project", project.marker.problem, project.marker.fix, project.marker.setting)
        return project

    def _role(self, thread: Thread, project: Project) -> _Named | _No:
        """What names the default for the thread's role."""
        if thread.delegated:
            named = self._default(thread, SUBAGENT, project.subagent_default, self.settings.subagent_default, INHERIT)
            if named.name != INHERIT:
                return named
            broken = self.settings.broken.get(INHERIT)
            if broken is not None:
                return _No("broken_profile", broken.problem, broken.fix, broken.setting)
        return self._default(thread, DEFAULT, project.default, self.settings.default, ALL)

    def _default(self, thread: Thread, key: str, of_project: str | None, of_server: str | None, unset: str) -> _Named:
        """A project's override wins over the server's."""
        place, value = key, of_server
        if thread.project is not None and of_project is not None:
            place, value = path_text((PROJECTS, thread.project.strip(), key)), of_project
        name = unset if value is None else value
        role = "it is a sub-agent, and " if key == SUBAGENT else ""
        says = "is not set: the default is" if value is None else "is"
        self._step(self.at, "role", f"{role}{place} {says} {quoted(name)}", place, value)
        return _Named(name, place)

    def _profile(self, named: _Named) -> Profile | _No:
        name, setting = named
        says = f"{setting} names {quoted(name)}"
        closed = self.settings.closed.get(PROFILES)
        if closed is not None:
            return _No("unreadable_map", f"{says}, and {closed.problem}", closed.fix, PROFILES)
        broken = self.settings.broken.get(name)
        if broken is not None:
            return _No("broken_profile", f"{says}, which can't be used: {broken.problem}", broken.fix, broken.setting)
        found = self.settings.profiles.get(name) or _BUILT_IN.get(name)
        if found is not None:
            return found
        marker = next((one for one in self.settings.markers if one.setting == setting), None)
        if marker is not None and marker.text == name:
            return _No("unreadable_name", marker.problem, marker.fix, setting)
        if name == INHERIT:
            reason = f"{says}, which only the default of sub-agents can be"
            return _No("inherit_here", reason, f"set it to a profile, {listed(BUILT_IN)}", setting)
        close = near(name, (*self.settings.profiles, *BUILT_IN))
        hint = f" (did you mean {listed(close)}?)" if close else ""
        fix = f"{_PICK}, or {'add that profile' if is_profile_name(name) else f'repair {setting}'}{hint}"
        return _No("unknown_profile", f"{says}, which is not set up", fix, setting)

    def _access(self, host: Host) -> Access:
        layers = tuple(self.layers.values())
        servers: set[str] = set()
        groups: set[str] = set()
        for layer in layers:
            if isinstance(layer.profile.servers, frozenset):
                servers |= layer.profile.servers
            servers |= layer.profile.tools.keys()
            if isinstance(layer.profile.groups, frozenset):
                groups |= layer.profile.groups
        return Access(
            thread=self.thread_id,
            layers=layers,
            host=host,
            unknown_servers=tuple(sorted(servers - host.servers.keys())),
            unknown_groups=tuple(sorted(groups - set(host.groups))),
            steps=tuple(self.steps),
        )

    def _refused(self, at: str, no: _No) -> Refused:
        reason = no.reason if at == self.thread_id else f"its parent's access can't be told: {no.reason}"
        self._step(at, "refused", no.reason, no.setting)
        return Refused(self.thread_id, no.code, reason, no.fix, no.setting, at, tuple(self.steps))

    def _step(self, thread: str, kind: str, text: str, setting: str | None = None, value: str | None = None) -> None:
        self.steps.append(Step(thread, kind, text, setting, value))
