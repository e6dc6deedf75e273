"""Writes docs/guides/access-refusals.md from refusals that are provoked here, so that it quotes what is really said.

`python tools/access_refusals.py` writes it; with `--check` it only says, by its exit code, whether it is current and
whether a place in the code that refuses is provoked by no case.
"""

from __future__ import annotations

import ast
import errno
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "guides" / "access-refusals.md"
sys.path.insert(0, str(ROOT / "src"))

from hotplug.access import (  # noqa: E402
    Host,
    PatchRefused,
    Refused,
    Thread,
    Toolkit,
    apply_patch,
    parse,
    read_settings,
    resolve,
)
from hotplug.errors import HotplugError  # noqa: E402
from hotplug.store import SettingsFile  # noqa: E402
from hotplug.store import settings as store_settings  # noqa: E402
from hotplug.store.whole import locked  # noqa: E402

_REFUSING = {"PatchRefused", "_refuse", "_No", "Fault", "_mark", "_unreadable", "_twice", "_denied"}
_FILES = {
    "access/patch.py": _REFUSING,
    "access/profiles.py": _REFUSING,
    "access/resolver.py": _REFUSING,
    "access/settings.py": _REFUSING,
    "access/granted.py": _REFUSING | {"Decision"},
    "store/settings.py": {"PatchRefused", "StoreError", "Conflict", "ConfigError"},
    "store/whole.py": {"FileTrouble"},
}
"""Where refusals are made, and by calling what."""

_LAST_RESORT = "its profiles together give none of it"
"""Said where no single rule keeps a tool, which can't be: there always is one."""

LEAN: dict[str, Any] = {"servers": ["mail"], "groups": ["threads"]}
HOST = Host(
    servers={"mail": ("search", "send"), "both": ("a",), "idle": ()},
    toolkits={
        "threads": Toolkit("threads", ("open",)),
        "finding": Toolkit(None, ("tool_search", "forgotten")),
        "both": Toolkit("threads", ("a",)),
    },
    ungrouped={"tool_search": "finding"},
)


@dataclass(frozen=True)
class Told:
    """One refusal as it is told."""

    what: str
    message: str
    fix: str


@dataclass(frozen=True)
class Save:
    """A patch that is refused."""

    what: str
    patch: Any
    before: Any = None
    role: Any = "person"

    def told(self) -> Told:
        text = self.before if isinstance(self.before, str) else json.dumps(self.before or {})
        made = parse(self.patch) if isinstance(self.patch, str) else self.patch
        try:
            apply_patch(parse(text), made, role=self.role, host=HOST, now_unused=["t3"])
        except PatchRefused as error:
            return Told(self.what, error.message, error.fix)
        raise SystemExit(f"{self.what}: the save is not refused")


@dataclass(frozen=True)
class Start:
    """A thread that is refused."""

    what: str
    settings: Any = None
    lineage: Mapping[str, Thread] | None = None

    def told(self) -> Told:
        text = self.settings if isinstance(self.settings, str) else json.dumps(self.settings or {})
        lineage = {"build-7": Thread("build-7", project="acme")} if self.lineage is None else self.lineage
        found = resolve(read_settings(text), "build-7", lineage, HOST)
        if not isinstance(found, Refused):
            raise SystemExit(f"{self.what}: the thread is not refused")
        return Told(self.what, found.reason, found.fix)


@dataclass(frozen=True)
class Call:
    """A tool that a thread doesn't get."""

    what: str
    server: str
    tool: str
    fix: str
    profile: Any = None
    parent: Any = None
    thread: str = "build-7"

    def told(self) -> Told:
        profiles = {"lean": self.profile or LEAN, "wide": self.parent or {"servers": "all", "groups": "all"}}
        settings = {"mcpProfiles": profiles, "mcpSubagentProfile": "lean", "mcpThreadProfiles": {"main": "wide"}}
        lineage = {"main": Thread("main"), "build-7": Thread("build-7", parent="main", delegated=True)}
        decision = resolve(read_settings(json.dumps(settings)), self.thread, lineage, HOST).allows(
            self.server, self.tool
        )
        if decision.allowed:
            raise SystemExit(f"{self.what}: the tool is given")
        return Told(self.what, decision.reason, self.fix)


@dataclass(frozen=True)
class Touch:
    """Something that a settings file doesn't let itself be done to."""

    what: str
    act: Callable[[SettingsFile, Path], object]

    def told(self) -> Told:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "settings.json"
            try:
                self.act(SettingsFile(path), path)
            except PatchRefused as error:
                return Told(self.what, error.message, error.fix)
            except HotplugError as error:
                message = error.message.replace(f"{Path(folder).resolve()}/", "").replace(f"{folder}/", "")
                return Told(self.what, message, (error.hint or "").replace(f"{Path(folder).resolve()}/", ""))
        raise SystemExit(f"{self.what}: nothing is refused")


def _profile(value: Any) -> dict[str, Any]:
    return {"mcpProfiles": {"lean": value}}


def _rule(value: Any) -> dict[str, Any]:
    return _profile({**LEAN, "tools": value})


SAVES = (
    Save("a default that nobody set up", {"mcpProfile": "lean"}, {"mcpProfiles": {"lane": LEAN}}),
    Save("`inherit` where it means nothing", {"mcpProfile": "inherit"}),
    Save("a default that is no text", {"mcpProfile": 5}),
    Save("a blank default", {"mcpProfile": " "}),
    Save("a profile that can't be used", {"mcpProfile": "lean"}, _profile({"servers": "all"})),
    Save("any profile, while they can't be read", {"mcpProfile": "lean"}, {"mcpProfiles": []}),
    Save("a built-in name for a profile", {"mcpProfiles": {"all": LEAN}}),
    Save("a name that no profile can have", {"mcpProfiles": {"Lean": LEAN}}),
    Save("removing a profile in use", {"mcpProfiles": {"lean": None}}, {**_profile(LEAN), "mcpProfile": "lean"}),
    Save("a profile that is no object", _profile("all")),
    Save("a profile without a field", _profile({"servers": "all"})),
    Save("a profile with a field that isn't known", _profile({**LEAN, "tool": {}})),
    Save("a field twice", '{"mcpProfiles": {"lean": {"servers": "all", "groups": [], "groups": []}}}'),
    Save("a text where a list belongs", _profile({**LEAN, "servers": "mail"})),
    Save("another type where a list belongs", _profile({**LEAN, "servers": 1})),
    Save("something in a list that is no name", _profile({**LEAN, "servers": [1]})),
    Save("a blank name in a list", _profile({**LEAN, "servers": [""]})),
    Save("a pattern where a name belongs", _profile({**LEAN, "servers": ["mail*"]})),
    Save("blanks around a server's name", _profile({**LEAN, "servers": ["mail "]})),
    Save("a group that the host hasn't got", _profile({**LEAN, "groups": ["thread"]})),
    Save("rules for tools that are no object", _rule([])),
    Save(
        "rules for a server twice",
        '{"mcpProfiles": {"lean": {"servers": [], "groups": [], "tools": '
        '{"mail": {"allow": []}, "mail": {"deny": []}}}}}',
    ),
    Save("a rule for a blank server", _rule({" ": {"allow": []}})),
    Save("a rule that is no object", _rule({"mail": []})),
    Save("a rule that says nothing", _rule({"mail": {}})),
    Save("a pick for an id that no thread has", {"mcpThreadProfiles": {" x": "all"}}),
    Save(
        "pick 501",
        {"mcpThreadProfiles": {"new": "all"}},
        {"mcpThreadProfiles": {f"t{number}": "all" for number in range(500)}},
    ),
    Save("pick 501, into an empty file", {"mcpThreadProfiles": {f"t{number}": "all" for number in range(501)}}),
    Save("a project with a blank name", {"projects": {" ": {"mcpProfile": "all"}}}),
    Save("a project that is no object", {"projects": {"acme": "all"}}),
    Save("a project's setting twice", '{"projects": {"acme": {"mcpProfile": "all", "mcpProfile": "all"}}}'),
    Save("a project's setting in another spelling", {"projects": {"acme": {"mcp_profile": "all"}}}),
    Save("a setting in another spelling", {"mcp_profile": "all"}),
    Save("a map as a whole", {"mcpThreadProfiles": None}, {"mcpThreadProfiles": {"build-7": "all"}}),
    Save("a map that is none", {"mcpThreadProfiles": []}),
    Save("an entry of a map that can't be read", {"mcpThreadProfiles": {"build-7": "all"}}, {"mcpThreadProfiles": 5}),
    Save("a setting twice", '{"mcpProfile": "all", "mcpProfile": "all"}'),
    Save("an entry twice", '{"mcpThreadProfiles": {"build-7": "all", "build-7": "all"}}'),
    Save("a patch that is no object", "[]"),
    Save("a patch with something in it that JSON hasn't got", {"mcpProfile": {1, 2}}),
    Save("an agent's own save", {"mcpProfile": "all"}, role="agent"),
    Save("the same in another spelling", {"MCP-Profile": "all"}, role="agent"),
)

_CHILD = Thread("build-7", parent="main")
_SUB = Thread("build-7", parent="main", delegated=True)
STARTS = (
    Start("the default names no profile", {"mcpProfile": "lean"}),
    Start("the pick names no profile", {"mcpThreadProfiles": {"build-7": "Lean"}, **_profile(LEAN)}),
    Start("the default can't be read", {"mcpProfile": 5}),
    Start("the default is given twice", '{"mcpProfile": "all", "mcpProfile": "host-only"}'),
    Start("the default is `inherit`", {"mcpProfile": "inherit"}),
    Start("the profile can't be used", {"mcpProfile": "lean", **_profile({**LEAN, "later": 1})}),
    Start("the profile is given twice", '{"mcpProfile": "lean", "mcpProfiles": {"lean": {}, "lean": {}}}'),
    Start("the profile has a built-in's name", {"mcpProfiles": {"all": LEAN}}),
    Start("the profile has a name that none can have", {"mcpProfile": "Lean", "mcpProfiles": {"Lean": LEAN}}),
    Start(
        "a profile is called `inherit`", {"mcpProfiles": {"inherit": LEAN}}, {"build-7": _SUB, "main": Thread("main")}
    ),
    Start("the profiles can't be read", {"mcpProfile": "lean", "mcpProfiles": []}),
    Start("the profiles are given twice", '{"mcpProfile": "lean", "mcpProfiles": {}, "mcpProfiles": {}}'),
    Start("the picks can't be read", {"mcpThreadProfiles": "all"}),
    Start("the projects can't be read", {"projects": []}),
    Start("the thread's project can't be read", {"projects": {"acme": "all"}}),
    Start("the thread's project is given twice", '{"projects": {"acme": {}, "acme": {}}}'),
    Start("the file can't be read, and there is no good copy", "{"),
    Start("the thread isn't known", lineage={}),
    Start("its parent isn't known", lineage={"build-7": _CHILD}),
    Start("nobody says whose sub-agent it is", lineage={"build-7": Thread("build-7", delegated=True)}),
    Start(
        "its parent is refused", {"mcpThreadProfiles": {"main": "lean"}}, {"build-7": _CHILD, "main": Thread("main")}
    ),
    Start("it is above itself", lineage={"build-7": _CHILD, "main": Thread("main", parent="build-7")}),
    Start(
        "it is over 64 deep",
        lineage={"build-7": Thread("build-7", parent="p0")}
        | {f"p{number}": Thread(f"p{number}", parent=f"p{number + 1}") for number in range(70)},
    ),
)

_PROFILE_FIX = "give it in that profile, or pick another profile for this thread"
_PARENT_FIX = "pick a profile for this thread: a pick is not cut down"
CALLS = (
    Call("the profile leaves out the server", "mail", "send", _PROFILE_FIX, {"servers": [], "groups": []}),
    Call("the profile denies the tool", "mail", "send", _PROFILE_FIX, {**LEAN, "tools": {"mail": {"deny": ["send"]}}}),
    Call("it allows others", "mail", "send", _PROFILE_FIX, {**LEAN, "tools": {"mail": {"allow": ["search"]}}}),
    Call("it allows none", "mail", "send", _PROFILE_FIX, {**LEAN, "tools": {"mail": {"allow": []}}}),
    Call("the parent hasn't got it", "mail", "send", _PARENT_FIX, LEAN, {"servers": [], "groups": "all"}),
    Call("the profile leaves out the group", "threads", "open", _PROFILE_FIX, {**LEAN, "groups": []}),
    Call("the server isn't set up", "web", "fetch", "set the server up; its name is matched exactly"),
    Call("the server has no such tool", "mail", "sned", "its name is matched exactly"),
    Call("the toolkit has no such tool", "threads", "opn", "its name is matched exactly"),
    Call(
        "the host forgot to put it in a group", "finding", "forgotten", "the host's own test of `Host.check()` finds it"
    ),
    Call("the thread is refused", "mail", "send", "what is said there", thread="build-8"),
    Call("a server and a toolkit have the same name", "both", "a", "rename one of them"),
)


def _break(file: SettingsFile, path: Path) -> None:
    file.save({"mcpProfile": "host-only"}, role="person")
    path.write_text('{"mcpProfile": ', encoding="utf-8")


def _save_broken(file: SettingsFile, path: Path) -> None:
    _break(file, path)
    file.save({"mcpProfile": "all"}, role="person")


def _save_gone(file: SettingsFile, path: Path) -> None:
    file.save({"mcpProfile": "host-only"}, role="person")
    path.unlink()
    file.save({"mcpProfile": "all"}, role="person")


def _save_stale(file: SettingsFile, path: Path) -> None:
    base = file.save({"mcpProfile": "host-only"}, role="person").version
    file.save({"mcpProfile": "all"}, role="person")
    file.save({"mcpProfile": "host-only"}, role="person", based_on=base)


def _save_forgotten(file: SettingsFile, path: Path) -> None:
    file.save({"mcpProfile": "host-only"}, role="person")
    file.save({"mcpProfile": "all"}, role="person", based_on="0123456789abcdef")


def _save_busy(file: SettingsFile, path: Path) -> None:
    file.save({"mcpProfile": "host-only"}, role="person")
    with locked(path.with_name("settings.json-versions") / "lock", patience=0), _without_waiting():
        file.save({"mcpProfile": "all"}, role="person")


def _save_restless(file: SettingsFile, path: Path) -> None:
    path.write_text("{}", encoding="utf-8")
    with patch.object(SettingsFile, "_is_still", return_value=False):
        file.save({"mcpProfile": "all"}, role="person")


def _save_full(file: SettingsFile, path: Path) -> None:
    with patch.object(os, "fsync", side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))):
        file.save({"mcpProfile": "all"}, role="person")


def _save_unconfirmed(file: SettingsFile, path: Path) -> None:
    with patch.object(store_settings, "sync_folder", side_effect=OSError(errno.EIO, os.strerror(errno.EIO))):
        file.save({"mcpProfile": "all"}, role="person")


def _save_anothers(file: SettingsFile, path: Path) -> None:
    path.write_text("{}", encoding="utf-8")
    real = os.fstat

    def another(fd: int) -> os.stat_result:
        return os.stat_result((*real(fd)[:4], 1000, 1000, *real(fd)[6:]))

    def no(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no")

    with patch("hotplug.store.whole.os.fchown", no), patch.object(store_settings, "staged", _staged_like(another)):
        file.save({"mcpProfile": "all"}, role="person")


def _staged_like(stat_of: Callable[[int], os.stat_result]) -> Any:
    """`staged`, for a file that belongs to user and group 1000."""
    from hotplug.store.whole import staged

    @contextmanager
    def made(path: Path, data: bytes, *, like: os.stat_result | None) -> Iterator[Path]:
        if like is not None:
            with path.open("rb") as file:
                like = stat_of(file.fileno())
        with staged(path, data, like=like) as temporary:
            yield temporary

    return made


def _save_a_pipe(file: SettingsFile, path: Path) -> None:
    os.mkfifo(path)
    file.save({"mcpProfile": "all"}, role="person")


def _save_while_written(file: SettingsFile, path: Path) -> None:
    path.write_text("{}", encoding="utf-8")
    with patch("hotplug.store.whole._TORN", 0):
        file.save({"mcpProfile": "all"}, role="person")


def _restore_broken(file: SettingsFile, path: Path) -> None:
    _break(file, path)
    file.restore(file.history()[0].version, role="person")
    file.restore(next(one.version for one in file.history() if not one.readable), role="person")


@contextmanager
def _without_waiting() -> Iterator[None]:
    """Without the ten seconds; the message says them all the same."""
    real = store_settings.locked

    def at_once(path: Path, *, patience: float) -> Any:
        return real(path, patience=0)

    with patch.object(store_settings, "locked", at_once):
        yield


TOUCHES = (
    Touch("somebody else changed the same setting", _save_stale),
    Touch("the version that you looked at isn't kept any more", _save_forgotten),
    Touch("the file is no JSON", _save_broken),
    Touch("the file was there and is gone", _save_gone),
    Touch("somebody else doesn't get done", _save_busy),
    Touch("somebody else keeps changing it", _save_restless),
    Touch("it is just being written, again and again", _save_while_written),
    Touch("it is no file", _save_a_pipe),
    Touch("it belongs to somebody else", _save_anothers),
    Touch("the disk is full", _save_full),
    Touch("the disk fails at the end", _save_unconfirmed),
    Touch("no version is called so", lambda file, path: file.restore("abc", role="person")),
    Touch("that version was no JSON itself", _restore_broken),
    Touch("an agent would restore one", lambda file, path: file.restore("abc", role="agent")),
)

_HEAD = """\
# Refusals, and what to do about each

Every doubt closes: what can't be read, isn't known or isn't there gives nobody more than before.
So there are many ways to be refused, and each says which setting it is about and how to go on.
This page holds them all, as they are really said. `tools/access_refusals.py` provokes each and writes the page; a test
holds it to the code, and finds a refusal that isn't here.

- On the command line a refused save ends with 1, and the error says `setting` and `hint`; with `--json` it is one
  object. `hotplug access explain THREAD` ends with 1 for a thread that is refused, `hotplug access check` for
  everything on this page that stands in the file.
- In Python a save raises `PatchRefused` with `setting`, `message`, `fix` and `others`; a thread is a `Refused` with
  `code`, `reason` and `fix`; a tool is a `Decision` that is false, with `reason` and `setting`.
- A caller over MCP reads none of this: for a tool that isn't given it gets the same answer as for one that doesn't
  exist.

The examples are about the profile `lean`, the thread `build-7`, the project `acme`, the server `mail` and the group
`threads`.
"""

_PARTS: tuple[tuple[str, str, tuple[Any, ...]], ...] = (
    (
        "A save is refused",
        "Nothing of it is written. What stood in the file before and isn't changed is never a reason.",
        SAVES,
    ),
    (
        "A thread is refused",
        """\
It gets nothing at all, until the reason is gone; then it does at its next call.
A pick for the thread itself is final, so it helps wherever the reason lies with a default, a project or a parent.""",
        STARTS,
    ),
    ("A tool isn't given", "The thread gets others. The setting that is named is where the rule stands.", CALLS),
    (
        "The file doesn't let itself be saved or restored",
        "What stands in the file is left alone. While it can't be read, the last good version is used, to read only.",
        TOUCHES,
    ),
)


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for title, about, cases in _PARTS:
        rows = [case.told() for case in cases]
        parts.append(f"## {title}\n\n{about}\n")
        parts.append("| what | it says | what to do |\n| --- | --- | --- |")
        parts[-1] += "".join(f"\n| {row.what} | {_cell(row.message)} | {row.fix} |" for row in rows) + "\n"
    return "\n".join(parts)


def _cell(message: str) -> str:
    return f"`{message}`"


def unprovoked() -> list[str]:
    """The places in the code that refuse, and that no case comes by."""
    source = ROOT / "src" / "hotplug"
    places = {str(source / name): _sites(source / name, names) for name, names in _FILES.items()}
    seen: set[tuple[str, int]] = set()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename not in places:
            return None
        seen.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    sys.settrace(trace)
    try:
        for _, _, cases in _PARTS:
            for case in cases:
                case.told()
    finally:
        sys.settrace(None)
    return [
        f"{Path(file).relative_to(ROOT)}:{line}"
        for file, lines in places.items()
        for line in lines
        if (file, line) not in seen
    ]


def _sites(path: Path, names: set[str]) -> list[int]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node.func) in names]
    return sorted({node.lineno for node in calls if not _says_yes(node) and _LAST_RESORT not in ast.unparse(node)})


def _says_yes(call: ast.Call) -> bool:
    return bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value is True


def _called(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def run(arguments: list[str]) -> int:
    text = page()
    if "--check" in arguments:
        missing = unprovoked()
        if missing:
            sys.stderr.write("no case comes by " + ", ".join(missing) + "\n")
        current = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text
        return 0 if current and not missing else 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
