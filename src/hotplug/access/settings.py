"""The access settings as read: a bad value costs its part and no other, and nothing falls open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from hotplug.access.document import (
    Document,
    ListNode,
    Node,
    NullNode,
    ObjectNode,
    TextNode,
    parse,
    write_node,
)
from hotplug.access.errors import NotJson
from hotplug.access.names import (
    DEFAULT,
    INHERIT,
    PICKS,
    PROFILES,
    PROJECTS,
    RESERVED,
    SUBAGENT,
    is_profile_name,
    path_text,
    quoted,
)
from hotplug.access.profiles import Fault, Profile, fault_text, read_profile

__all__ = ["TWICE", "Marker", "MarkerKind", "Project", "Settings", "marker_text", "read_settings", "settings_of"]

MarkerKind = Literal["unreadable", "twice", "profile", "reserved", "name"]

TWICE: Final = "(given twice)"


@dataclass(frozen=True, slots=True)
class Marker:
    """What stands where a value can't be used; its original is still in the document.

    Args:
        path: Where.
        kind: `unreadable` (of another type), `twice` (the key is given twice), `profile` (a shape that this build
            can't use), `reserved` (a profile named like a built-in), `name` (no profile can be called that).
        original: What stands in the file; for a key that is given twice a list of both.
        problem: In words, with the place.
        fix: What the owner does.
    """

    path: tuple[str, ...]
    kind: MarkerKind
    original: Node
    problem: str
    fix: str

    @property
    def text(self) -> str:
        """What is read in its place: `(unreadable number)`. No profile can have such a name."""
        if self.kind == "unreadable":
            return marker_text(self.original)
        return TWICE if self.kind == "twice" else f"(unusable {'name' if self.kind == 'name' else 'profile'})"

    @property
    def setting(self) -> str:
        """Its path as a person writes it."""
        return path_text(self.path)

    def document(self) -> dict[str, object]:
        """The marker for programs; the original as JSON text."""
        return {
            "setting": self.setting,
            "kind": self.kind,
            "reads": self.text,
            "original": write_node(self.original, indent=None),
            "message": self.problem,
            "fix": self.fix,
        }


@dataclass(frozen=True, slots=True)
class Project:
    """What a project sets for its threads.

    Args:
        default: Instead of `mcpProfile`; None where it is not set.
        subagent_default: Instead of `mcpSubagentProfile`; None where it is not set.
        marker: The whole entry can't be read, so no thread of the project gets a role's default.
    """

    default: str | None = None
    subagent_default: str | None = None
    marker: Marker | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """Access settings, read leniently.

    Args:
        profiles: Those that can be used.
        broken: Names whose profile can't be: whoever uses one is refused, a built-in's name too.
        default: `mcpProfile`; None where it is not set, which means `all`.
        subagent_default: `mcpSubagentProfile`; None where it is not set, which means `inherit`.
        picks: The owner's pick by thread.
        projects: By name.
        closed: Maps that can't be read: whoever would have been looked up in one is refused.
        markers: Everything that can't be used, in the file's order.
        document: What was read, to be written back; None where there is no file or none that can be read.
        unreadable: Why the file can't be read at all; with `read_only` the rest is the last good copy.
        read_only: This is a last good copy: it decides, and isn't saved.
    """

    profiles: Mapping[str, Profile] = field(default_factory=dict[str, Profile])
    broken: Mapping[str, Marker] = field(default_factory=dict[str, Marker])
    default: str | None = None
    subagent_default: str | None = None
    picks: Mapping[str, str] = field(default_factory=dict[str, str])
    projects: Mapping[str, Project] = field(default_factory=dict[str, Project])
    closed: Mapping[str, Marker] = field(default_factory=dict[str, Marker])
    markers: tuple[Marker, ...] = ()
    document: Document | None = None
    unreadable: str | None = None
    read_only: bool = False

    @property
    def refuses_all(self) -> bool:
        """Whether the file can't be read and there is no last good copy: every thread is refused."""
        return self.unreadable is not None and not self.read_only

    @property
    def warning(self) -> str | None:
        """What must be said loudly where the settings are not the file's; None where they are."""
        if self.unreadable is None:
            return None
        if self.read_only:
            return (
                f"the settings file can't be read ({self.unreadable}): the last good copy is used, and nothing is saved"
            )
        return (
            f"the settings file can't be read ({self.unreadable}), and there is no good copy: every thread is refused"
        )

    def marker(self, *path: str) -> Marker | None:
        """The marker that stands at a path; None where the value there can be used."""
        return next((one for one in self.markers if one.path == path), None)

    def profile_names(self) -> tuple[str, ...]:
        """The names of the profiles that can be used, the built-in ones not among them."""
        return tuple(self.profiles)


def marker_text(node: Node) -> str:
    """What a value of a wrong type reads as: `(unreadable number)`."""
    return f"(unreadable {node.kind})"


def read_settings(text: str | bytes | None, *, last_good: str | bytes | None = None) -> Settings:
    """Reads the settings; never fails.

    Args:
        text: The file's content; None where there is no file: every key is then not set. An empty file is no JSON.
        last_good: The content of the last version that could be read, used where `text` is no JSON object.
    """
    if text is None:
        return Settings()
    try:
        document = parse(text)
    except NotJson as error:
        return _without_file(str(error), last_good)
    found = settings_of(document)
    return found if found.unreadable is None else _without_file(found.unreadable, last_good)


def settings_of(document: Document) -> Settings:
    """The settings in a document that is parsed already; as leniently."""
    if not isinstance(document.root, ObjectNode):
        return Settings(unreadable=f"it holds a {document.root.kind}, not an object")
    return _Reading(document, document.root).settings()


def _without_file(problem: str, last_good: str | bytes | None) -> Settings:
    if last_good is not None:
        kept = read_settings(last_good)
        if kept.unreadable is None:
            return replace(kept, unreadable=problem, read_only=True)
    return Settings(unreadable=problem)


class _Reading:
    """One reading of a document; gathers its markers."""

    def __init__(self, document: Document, root: ObjectNode) -> None:
        self.document = document
        self.root = root
        self.markers: list[Marker] = []
        self.closed: dict[str, Marker] = {}

    def settings(self) -> Settings:
        profiles, broken = self._profiles()
        default = self._name(self.root, (), DEFAULT)
        subagent_default = self._name(self.root, (), SUBAGENT)
        picks = self._picks()
        projects = self._projects()
        return Settings(
            profiles=profiles,
            broken=broken,
            default=default,
            subagent_default=subagent_default,
            picks=picks,
            projects=projects,
            closed=self.closed,
            markers=tuple(self.markers),
            document=self.document,
        )

    def _profiles(self) -> tuple[dict[str, Profile], dict[str, Marker]]:
        profiles: dict[str, Profile] = {}
        broken: dict[str, Marker] = {}
        node = self._map(PROFILES)
        for name in node.names():
            path = (PROFILES, name)
            values = node.values(name)
            if len(values) > 1:
                broken[name] = self._twice(path, values)
            elif isinstance(values[0], NullNode):
                continue
            elif name in RESERVED:
                word = "means the default" if name == INHERIT else "is a built-in profile"
                broken[name] = self._mark(
                    path,
                    "reserved",
                    values[0],
                    f"{quoted(name)} {word}, so no profile can be called that",
                    "give the profile another name",
                )
            elif not is_profile_name(name):
                broken[name] = self._mark(
                    path,
                    "name",
                    values[0],
                    f"no profile can be called {quoted(name)}",
                    "use 1 to 64 of a-z, 0-9, - and _",
                )
            else:
                found = read_profile(name, values[0])
                if isinstance(found, Fault):
                    broken[name] = self._mark(path, "profile", values[0], fault_text(path, found), found.fix)
                else:
                    profiles[name] = found
        return profiles, broken

    def _picks(self) -> dict[str, str]:
        picks: dict[str, str] = {}
        for thread, values in self._entries(PICKS).items():
            pick = self._text((PICKS, thread), values)
            if pick is not None:
                picks[thread] = pick
        return picks

    def _projects(self) -> dict[str, Project]:
        projects: dict[str, Project] = {}
        for name, values in self._entries(PROJECTS).items():
            path = (PROJECTS, name)
            if len(values) > 1:
                projects[name] = Project(marker=self._twice(path, values))
                continue
            node = values[0]
            if isinstance(node, ObjectNode):
                projects[name] = Project(self._name(node, path, DEFAULT), self._name(node, path, SUBAGENT))
            elif not isinstance(node, NullNode):
                projects[name] = Project(marker=self._unreadable(path, node, "write an object, or take it out"))
        return projects

    def _map(self, key: str) -> ObjectNode:
        """The object under a key; an empty one where it isn't set, or can't be read and is closed."""
        values = self.root.values(key)
        if len(values) > 1:
            self.closed[key] = self._twice((key,), values)
        elif values and isinstance(values[0], ObjectNode):
            return values[0]
        elif values and not isinstance(values[0], NullNode):
            self.closed[key] = self._unreadable((key,), values[0], "write an object, or take it out")
        return ObjectNode()

    def _entries(self, key: str) -> dict[str, list[Node]]:
        """A map's values by its trimmed keys: two that differ in blanks at an end are one key, given twice."""
        found: dict[str, list[Node]] = {}
        for name, value in self._map(key).members:
            found.setdefault(name.strip(), []).append(value)
        return found

    def _name(self, node: ObjectNode, path: tuple[str, ...], key: str) -> str | None:
        return self._text((*path, key), node.values(key))

    def _text(self, path: tuple[str, ...], values: list[Node]) -> str | None:
        """A name, trimmed; None where it is not set; a marker's text where it can't be read."""
        if not values:
            return None
        if len(values) > 1:
            return self._twice(path, values).text
        if isinstance(values[0], TextNode):
            return values[0].value.strip() or None
        if isinstance(values[0], NullNode):
            return None
        return self._unreadable(path, values[0], "write the name of a profile").text

    def _unreadable(self, path: tuple[str, ...], node: Node, fix: str) -> Marker:
        return self._mark(path, "unreadable", node, f"{path_text(path)} is {marker_text(node)}", fix)

    def _twice(self, path: tuple[str, ...], values: list[Node]) -> Marker:
        problem = f"{path_text(path)} is given twice: other readers take the last one"
        return self._mark(path, "twice", ListNode(tuple(values), inline=True), problem, "leave one of them")

    def _mark(self, path: tuple[str, ...], kind: MarkerKind, original: Node, problem: str, fix: str) -> Marker:
        marker = Marker(path, kind, original, problem, fix)
        self.markers.append(marker)
        return marker
