"""Servers that other clients are set up with, as entries of `hotplug.toml`. Pure: nothing here reads or writes a file.

| client | files | form |
| --- | --- | --- |
| Claude Desktop | `claude_desktop_config.json` | `mcpServers` |
| Claude Code | `~/.claude.json`, `.mcp.json` | `mcpServers`, and by project; `${VAR}`, `${VAR:-default}` |
| Cursor | `~/.cursor/mcp.json`, `.cursor/mcp.json` | `mcpServers`; `${env:VAR}`, `${workspaceFolder}`, … |
| VS Code | `mcp.json` of a profile, `.vscode/mcp.json` | `servers`, `inputs`, comments; `${input:ID}`, `${env:VAR}` |

What a client fills in is filled in here as far as it is known: folders, and variables that hold no credential. A
variable or input that does becomes a secret, so that its value never comes into the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, Final, Literal, cast

from hotplug.connect.jsonc import parse_jsonc
from hotplug.connect.masking import credential_like
from hotplug.errors import ConfigError
from hotplug.gateway.plain import argv_holds_secret, looks_secret, url_holds_secret
from hotplug.gateway.server_entry import read_server, server_name

__all__ = [
    "Client",
    "FoundSecret",
    "Imported",
    "LeftOut",
    "Place",
    "client_of",
    "import_file",
    "known_places",
    "merged",
    "unlooked",
]

Client = Literal["claude-desktop", "claude-code", "cursor", "vscode", "other"]

_LAUNCH: Final = ("command", "args", "env", "cwd", "url", "headers")
_SAID: Final = frozenset({*_LAUNCH, "serverUrl", "type", "transport", "disabled", "enabled", "oauth", "auth"})
_DROPPED: Final = frozenset(
    {"description", "version", "gallery", "alwaysAllow", "autoApprove", "dev", "name", "icon", "timeout", "sandbox"}
)
_LOST: Final = {
    "envFile": "envFile isn't read: its variables belong into env",
    "headersHelper": "headersHelper isn't run: a secret with a command does the same",
    "tools": "its list of tools isn't taken over: hotplug access says what threads may use",
    "disabledTools": "its list of tools isn't taken over: hotplug access says what threads may use",
}
_REFERENCE: Final = re.compile(r"\$\{([^{}]*)\}")
_SCHEME: Final = re.compile(r"([A-Za-z][\w-]* )?(\$\{[^{}]*\})")
_VARIABLE: Final = re.compile(r"([A-Za-z_]\w*)(?::-(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Place:
    """A file that a client keeps servers in, whether it is there or not.

    Args:
        local: It is the project's, and whoever wrote that may have written it.
    """

    client: Client
    path: Path
    local: bool = False


@dataclass(frozen=True, slots=True)
class FoundSecret:
    """A credential that an entry needs.

    Args:
        name: What it shall be called in `[secrets.NAME]`.
        place: Where the entry has it: `env.API_KEY`.
        value: The value that stands in the client's file in plain; None where it only names one.
        variable: The variable of the environment that holds it; None where no file says.
        before: What goes before it: `Bearer `.
        about: What the client asks its user for.
    """

    name: str
    place: str
    value: str | None = field(default=None, repr=False)
    variable: str | None = None
    before: str = ""
    about: str | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """One server of a client, as an entry of ours.

    Args:
        name: Its name here.
        entry: The keys of its table; secrets that stand in plain are still in it.
        source: The file it comes from, with the project where the file has several.
        secrets: What it needs.
        notes: What a person should look at.
    """

    name: str
    entry: Mapping[str, Any] = field(repr=False)
    source: str
    client: Client
    secrets: tuple[FoundSecret, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def disabled(self) -> bool:
        """Whether it isn't to be offered yet."""
        return self.entry.get("disabled") is True


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A server of a client that can't be taken over."""

    name: str
    source: str
    reason: str


def known_places(*, home: Path, platform: str, environ: Mapping[str, str], folder: Path) -> tuple[Place, ...]:
    """Where the clients keep servers on this machine, and in the folder of a project.

    Args:
        platform: As `sys.platform` says it.
    """
    if platform == "darwin":
        support = home / "Library" / "Application Support"
    elif platform == "win32":
        support = Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
    else:
        support = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    claude = Path(environ.get("CLAUDE_CONFIG_DIR") or home)
    return (
        Place("claude-desktop", support / "Claude" / "claude_desktop_config.json"),
        Place("claude-code", claude / ".claude.json"),
        Place("claude-code", folder / ".mcp.json", local=True),
        Place("cursor", home / ".cursor" / "mcp.json"),
        Place("cursor", folder / ".cursor" / "mcp.json", local=True),
        Place("vscode", support / "Code" / "User" / "mcp.json"),
        Place("vscode", support / "Code - Insiders" / "User" / "mcp.json"),
        Place("vscode", folder / ".vscode" / "mcp.json", local=True),
    )


def client_of(path: PurePath) -> Client:
    """The client whose file this is, by its name and folder."""
    parent = path.parent.name
    match path.name:
        case "claude_desktop_config.json":
            return "claude-desktop"
        case ".claude.json" | ".mcp.json":
            return "claude-code"
        case "mcp.json" if parent == ".cursor":
            return "cursor"
        case "mcp.json" if parent in (".vscode", "User"):
            return "vscode"
        case _:
            return "other"


def import_file(
    text: str, *, path: Path, home: Path, environ: Mapping[str, str], client: Client | None = None
) -> tuple[Imported | LeftOut, ...]:
    """Every server of a client's file. One that can't be taken over costs itself alone. Pure.

    Args:
        path: Where it lies: for messages, and for what clients fill in from it.
        environ: The variables that are set now.
        client: Whose it is; default: by its path.

    Raises:
        ConfigError: It isn't JSON, or holds no servers.
    """
    document = parse_jsonc(text, where=str(path))
    if not isinstance(document, dict):
        raise ConfigError(f"{path} holds no object with servers")
    whole = cast("dict[str, Any]", document)
    whose = client or client_of(path)
    inputs = _inputs(whole.get("inputs"))
    found: list[Imported | LeftOut] = []
    for source, folder, table, off in _tables(whole, path, whose):
        filling = _Filling(whose, folder, home, environ, inputs)
        for name, entry in table.items():
            found.append(_imported(name, entry, source, folder, whose, filling, off=name in off))
    return tuple(found)


def merged(found: Sequence[Imported]) -> tuple[Imported, ...]:
    """Servers of several files in one: the same entry once, other entries of one name under names of their own."""
    taken: dict[str, Imported] = {}
    for one in found:
        known = taken.get(one.name)
        if known is not None and (known.entry, known.secrets) == (one.entry, one.secrets):
            continue
        name = one.name
        count = 2
        while name in taken:
            name = f"{one.name[:48]}-{one.client}" if count == 2 else f"{one.name[:48]}-{one.client}-{count - 1}"
            count += 1
        if name != one.name:
            if any((other.entry, other.secrets) == (one.entry, one.secrets) for other in taken.values()):
                continue
            other = taken[one.name]
            one = replace(one, name=name, notes=(*one.notes, f"{other.source} has another server named {one.name}"))
        taken[name] = one
    return tuple(taken.values())


def unlooked(one: Imported) -> Imported:
    """A server that nobody decided on, as one that isn't offered yet."""
    note = "its file is of a project, and nobody looked at it: look what it starts, and take disabled away"
    return replace(one, entry={**one.entry, "disabled": True}, notes=(*one.notes, note))


def _tables(
    document: Mapping[str, Any], path: Path, client: Client
) -> Iterator[tuple[str, Path | None, Mapping[str, Any], frozenset[str]]]:
    """The tables of servers in a file, each with what to call it, the project's folder, and which are turned off."""
    folder = _project_of(path, client)
    count = 0
    mcp = document.get("mcp")  # VS Code's settings.json once had them in there
    holders = [document, *([cast("Mapping[str, Any]", mcp)] if isinstance(mcp, dict) else [])]
    for holder in holders:
        for key in ("mcpServers", "servers"):
            if isinstance(holder.get(key), dict):
                count += 1
                yield str(path), folder, cast("Mapping[str, Any]", holder[key]), frozenset()
    projects = document.get("projects")
    if isinstance(projects, dict):
        for project, entry in cast("Mapping[str, Any]", projects).items():
            held = cast("dict[str, Any]", entry if isinstance(entry, dict) else {})
            table, off = held.get("mcpServers"), held.get("disabledMcpServers")
            if isinstance(table, dict) and table:
                count += 1
                names = frozenset(map(str, cast("list[Any]", off))) if isinstance(off, list) else frozenset[str]()
                yield f"{path} (project {project})", Path(project), cast("Mapping[str, Any]", table), names
    if not count and client == "other":
        bare: dict[str, Any] = {
            name: entry
            for name, entry in document.items()
            if isinstance(entry, dict) and {"command", "url", "serverUrl"} & set(cast("dict[str, Any]", entry))
        }
        if not bare:
            raise ConfigError(f"{path} holds no servers (its keys: {', '.join(document) or 'none'})")
        yield str(path), folder, bare, frozenset()


def _project_of(path: Path, client: Client) -> Path | None:
    if path.name == ".mcp.json":
        return path.parent
    # One in the home is the user's own, and no project's.
    if path.parent.name in (".cursor", ".vscode") and client in ("cursor", "vscode"):
        return path.parent.parent
    return None


@dataclass(frozen=True, slots=True)
class _Input:
    about: str | None
    default: str | None
    hidden: bool


def _inputs(value: object) -> dict[str, _Input]:
    found: dict[str, _Input] = {}
    if isinstance(value, list):
        for one in cast("list[Any]", value):
            if not isinstance(one, dict):
                continue
            entry = cast("dict[str, Any]", one)
            about, default = entry.get("description"), entry.get("default")
            found[str(entry.get("id"))] = _Input(
                about if isinstance(about, str) else None,
                default if isinstance(default, str) else None,
                entry.get("password") is True,
            )
    return found


class _Unfilled(Exception):
    """A text holds what can't be filled in."""


class _Filling:
    """What one client would fill into the texts of its entries."""

    def __init__(
        self,
        client: Client,
        folder: Path | None,
        home: Path,
        environ: Mapping[str, str],
        inputs: Mapping[str, _Input],
    ) -> None:
        self._client = client
        self._environ = environ
        self._inputs = inputs
        known = {"userHome": str(home), "pathSeparator": "/", "/": "/"}
        # A user's own file has no workspace: the gateway's servers belong to none.
        if folder is not None and folder != home:
            known |= {"workspaceFolder": str(folder), "workspaceFolderBasename": folder.name, "cwd": str(folder)}
        self._known = known

    def text(self, text: str) -> str:
        """A text with everything filled in.

        Raises:
            _Unfilled: Something in it isn't known, or is a credential.
        """

        def fill(found: re.Match[str]) -> str:
            value = self._value(found[1])
            if value is None:
                raise _Unfilled(found[0])
            return value

        return _REFERENCE.sub(fill, text)

    def secret(self, key: str, text: str) -> FoundSecret | None:
        """The credential that a variable or header names, if it is nothing but that, after a scheme maybe."""
        whole = _SCHEME.fullmatch(text)
        if whole is None:
            return None
        inside = whole[2][2:-1]
        if self._value(inside) is not None and not credential_like(key):
            return None
        before = whole[1] or ""
        if inside.startswith("input:"):
            asked = self._inputs.get(inside[6:])
            if asked is not None and asked.default is not None and not asked.hidden:
                return None
            return FoundSecret(_secret_name(inside[6:]), key, before=before, about=asked and asked.about)
        variable = self._variable(inside)
        if variable is None:
            return None
        return FoundSecret(_secret_name(variable[0]), key, variable=variable[0], before=before)

    def _value(self, inside: str) -> str | None:
        if inside in self._known and self._client != "claude-code":
            return self._known[inside]
        if inside.startswith("input:"):
            asked = self._inputs.get(inside[6:])
            return asked.default if asked is not None and not asked.hidden else None
        variable = self._variable(inside)
        if variable is None:
            return None
        name, default = variable
        value = self._environ.get(name) or default
        return None if value is None or credential_like(name) or looks_secret(name, value) else value

    def _variable(self, inside: str) -> tuple[str, str | None] | None:
        """A variable of the environment, and what stands for it where it isn't set."""
        if self._client in ("cursor", "vscode"):
            return (inside[4:], None) if inside.startswith("env:") and inside[4:] else None
        found = _VARIABLE.fullmatch(inside.removeprefix("env:") if self._client == "other" else inside)
        return (found[1], found[2]) if found else None


def _imported(
    name: str, entry: object, source: str, folder: Path | None, client: Client, filling: _Filling, *, off: bool
) -> Imported | LeftOut:
    ours = _name(name)
    if not isinstance(entry, dict):
        return LeftOut(name, source, "its entry is no object")
    theirs = cast("dict[str, Any]", entry)
    notes: list[str] = [] if ours == name else [f"it is named {name!r} there"]
    if _is_gateway(theirs):
        return LeftOut(name, source, "it is the gateway itself, which can't stand behind itself")
    kind = str(theirs.get("type", theirs.get("transport"))).lower()
    if kind == "sse":
        return LeftOut(
            name, source, "it is reached over HTTP+SSE of 2024-11-05, which isn't spoken: use its streamable HTTP URL"
        )
    if kind == "ws":
        return LeftOut(name, source, "it is reached over a web socket, which isn't spoken")
    for key in theirs:
        if key in _LOST:
            notes.append(_LOST[key])
        elif key not in _SAID and key not in _DROPPED:
            notes.append(f"its key {key!r} isn't taken over")
    taken: dict[str, Any] = {key: theirs[key] for key in _LAUNCH if theirs.get(key) is not None}
    if "serverUrl" in theirs and "url" not in taken:
        taken["url"] = theirs["serverUrl"]
    off = off or theirs.get("disabled") is True or theirs.get("enabled") is False
    secrets: list[FoundSecret] = []

    unfilled: list[str] = []

    def filled(text: str, where: str) -> str:
        nonlocal off
        try:
            return filling.text(text)
        except _Unfilled as error:
            off = True
            unfilled.append(f"{where} holds {error}, which isn't known here")
            notes.append(f"{unfilled[-1]}: write it, and take disabled away")
            return text

    for key in ("command", "url", "cwd"):
        if isinstance(taken.get(key), str):
            taken[key] = filled(taken[key], key)
    if isinstance(taken.get("args"), list):
        taken["args"] = [
            filled(part, f"args[{index}]") if isinstance(part, str) else part
            for index, part in enumerate(cast("list[Any]", taken["args"]))
        ]
    for table in ("env", "headers"):
        if isinstance(taken.get(table), dict):
            taken[table] = _held(cast("dict[str, Any]", taken[table]), table, ours, filling, filled, secrets)
            if not taken[table]:
                del taken[table]
    if isinstance(taken.get("args"), list) and not taken["args"]:
        del taken["args"]
    if folder is not None and "command" in taken and "cwd" not in taken:
        taken["cwd"] = str(folder)
    login = theirs.get("oauth") or theirs.get("auth")
    if isinstance(login, str) and login != "oauth":
        notes.append("its auth isn't taken over: headers with an Authorization does the same")
    elif login:
        taken["oauth"] = _oauth(login, ours, filling, filled, secrets, notes)
        notes.append("it asks for OAuth: hotplug server login gets its tokens")
    if off:
        taken["disabled"] = True
    taken = _toml(taken)
    try:
        read_server(ours, taken, path=Path("hotplug.toml"), notice=_unheard)
    except ConfigError as error:
        if unfilled:
            return LeftOut(name, source, unfilled[0])
        return LeftOut(name, source, error.message.partition(f"server {ours!r}: ")[2] or error.message)
    if argv_holds_secret(_argv(taken)):
        notes.append("its arguments hold what looks like a secret, and stay in plain: most servers take it from env")
    if isinstance(taken.get("url"), str) and url_holds_secret(taken["url"]):
        notes.append("its URL holds what looks like a secret, and stays in plain: most servers take it from headers")
    return Imported(ours, taken, source, client, tuple(secrets), tuple(dict.fromkeys(notes)))


def _held(
    table: Mapping[str, Any],
    kind: str,
    server: str,
    filling: _Filling,
    filled: Callable[[str, str], str],
    secrets: list[FoundSecret],
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in table.items():
        if value is None:
            continue  # VS Code: not set for the child; it gets none but ours anyway
        if not isinstance(value, str):
            found[key] = value
            continue
        place = f"{kind}.{key}"
        named = filling.secret(place, value)
        if named is not None:
            secrets.append(named)
            found[key] = f"{named.before}secret:{named.name}"
            continue
        text = filled(value, place)
        found[key] = text
        if looks_secret(key, text):
            scheme, blank, rest = text.partition(" ")
            before = f"{scheme} " if kind == "headers" and blank and re.fullmatch(r"[A-Za-z][\w-]*", scheme) else ""
            secrets.append(FoundSecret(_secret_name(f"{server}-{key}"), place, rest if before else text, before=before))
    return found


def _oauth(
    login: object,
    server: str,
    filling: _Filling,
    filled: Callable[[str, str], str],
    secrets: list[FoundSecret],
    notes: list[str],
) -> dict[str, Any] | bool:
    """How a client logs in, as far as it says: Claude Code's `oauth`, Cursor's `auth`."""
    if not isinstance(login, dict):
        return True
    theirs = cast("dict[str, Any]", login)
    found: dict[str, Any] = {}
    client = theirs.get("clientId", theirs.get("CLIENT_ID"))
    if isinstance(client, str) and client:
        found["client_id"] = filled(client, "oauth.client_id")
        notes.append("its client has to allow http://127.0.0.1:PORT/callback as the address to come back to")
    secret = theirs.get("clientSecret", theirs.get("CLIENT_SECRET"))
    if isinstance(secret, str) and secret and "client_id" in found:
        place = "oauth.client_secret"
        named = filling.secret(place, secret) or FoundSecret(_secret_name(f"{server}-client-secret"), place, secret)
        secrets.append(replace(named, before=""))
        found["client_secret"] = f"secret:{named.name}"
    scopes = theirs.get("scopes")
    words: list[Any] = (
        scopes.split() if isinstance(scopes, str) else cast("list[Any]", scopes) if isinstance(scopes, list) else []
    )
    if words:
        found["scopes"] = words
    if theirs.get("callbackPort") is not None:
        found["port"] = theirs["callbackPort"]
    known = ("clientId", "CLIENT_ID", "clientSecret", "CLIENT_SECRET", "scopes", "callbackPort")
    notes += [f"its key oauth.{key} isn't taken over" for key in theirs if key not in known]
    return found or True


def _is_gateway(entry: Mapping[str, Any]) -> bool:
    """Whether a client starts or reaches `hotplug serve` by this entry: once it does, its file is found like others."""
    url = entry.get("url", entry.get("serverUrl"))
    if isinstance(url, str):
        return re.search(r"/threads/(?:owner|t_[a-z2-7]{16})/mcp/?$", url) is not None
    words = [PurePath(part).name.removesuffix(".exe") for part in _argv(entry) if part]
    return "serve" in words and "hotplug" in words[: words.index("serve")]


def _argv(entry: Mapping[str, Any]) -> tuple[str, ...]:
    command, args = entry.get("command"), entry.get("args")
    args = cast("list[Any]", args) if isinstance(args, list) else []
    first: list[Any] = cast("list[Any]", command) if isinstance(command, list) else [command] if command else []
    return tuple(map(str, (*first, *args)))


def _toml(value: Any) -> Any:
    """The value without what TOML has no form for."""
    if isinstance(value, dict):
        return {str(key): _toml(one) for key, one in cast("dict[Any, Any]", value).items() if one is not None}
    if isinstance(value, list):
        return [_toml(one) for one in cast("list[Any]", value) if one is not None]
    return value


def _name(name: str) -> str:
    """A name that a server may have, as close to its own as can be."""
    if server_name(name) is None:
        return name
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.")[:64] or "server"
    return plain if server_name(plain) is None else f"{plain[:57]}-server"


def _secret_name(text: str) -> str:
    return re.sub(r"[^a-z0-9_.-]+", "-", text.lower()).strip("-.") or "secret"


def _unheard(key: str, message: str, fix: str | None = None, *, secret: bool = False) -> None:
    """What is odd about an entry is told where the file is read."""
