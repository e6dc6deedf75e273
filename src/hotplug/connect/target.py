"""The one grammar of targets: what a person may write where a server is meant, as values.

| written | target |
| --- | --- |
| `https://host/mcp` | `HttpTarget` |
| a command: after `--`, a list of arguments, or a string with a blank | `CommandTarget` |
| `npm:package[@version]`, `pypi:package[==version]`, with arguments after it | `PackageTarget` |
| `server.py`, `server.py:object`, `module:object` | `PythonTarget` |
| a name, `file.json#name`, `hotplug.toml#name` | `NamedTarget` |
| `sqlite:///FILE`, `folder:DIR`, each with `?me=ADDRESS` for the owner's mail address | `NativeTarget` |
| a server object | `ObjectTarget` |
| an `mcpServers` entry as a dict | `EntryTarget` |

Parsing is pure: no file is opened, nothing is looked up on the path. `hotplug.connect.launch` finds what to start.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast
from urllib.parse import quote, unquote, urlsplit

from hotplug.connect.masking import mask_argv, mask_url
from hotplug.connect.secrets import Held, held
from hotplug.errors import ConfigError

__all__ = [
    "CommandTarget",
    "EntryTarget",
    "HttpTarget",
    "NamedTarget",
    "NativeTarget",
    "ObjectTarget",
    "PackageTarget",
    "PythonTarget",
    "Target",
    "entry_target",
    "parse_target",
]

_FORMS: Final = (
    "a URL (https://host/mcp), a command after -- or as a list (npx -y caldav-mcp), npm:package[@version], "
    "pypi:package[==version], a Python file or module:object, a server's name, file.json#name, "
    "sqlite:///FILE, folder:DIR, each with ?me=ADDRESS where its owner is invited"
)
_SCHEMES: Final = ("http", "https", "npm", "pypi", "sqlite", "folder")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_NAME: Final = re.compile(r"[A-Za-z0-9_][\w.-]*")
_MODULE_OBJECT: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_FILE_OBJECT: Final = re.compile(r"(?P<file>.+\.py)(?::(?P<object>[^\W\d]\w*(?:\.[^\W\d]\w*)*))?")
_NPM: Final = re.compile(r"(?P<name>(?:@[\w.~-]+/)?[\w.~][\w.~-]*)(?:@(?P<version>[\w.+^~*-]+))?")
_PYPI: Final = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)(?P<extras>\[[\w.,\s-]+\])?(?:(?:==|@)(?P<version>[\w.+!-]+))?"
)
_ASSIGNMENT: Final = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.DOTALL)
_SETTING: Final = re.compile(r"(?P<path>.*)\?(?P<name>\w+)=(?P<value>[^?]*)", re.DOTALL)
_OPERATORS: Final = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "<<", "2>", "2>&1"})


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """A server behind a URL (streamable HTTP).

    Args:
        url: With scheme `http` or `https`.
        headers: Sent with every request; a value may be a secret.
    """

    url: str
    headers: Mapping[str, Held] = field(default_factory=dict[str, Held])

    def describe(self) -> dict[str, Any]:
        """What it is, for `-v` and JSON documents: no credential in it, headers by name only."""
        return {"kind": "http", "url": mask_url(self.url), **_if(headers=sorted(self.headers))}

    def __str__(self) -> str:
        return mask_url(self.url)

    def __repr__(self) -> str:
        return f"HttpTarget({str(self)!r})"


@dataclass(frozen=True, slots=True)
class CommandTarget:
    """A command that speaks MCP on its standard streams; started as it is, never through a shell.

    Args:
        argv: The command and its arguments.
        env: Variables for it, beside a short base; a value may be a secret.
        cwd: Where it starts; default: where we are.
    """

    argv: tuple[str, ...]
    env: Mapping[str, Held] = field(default_factory=dict[str, Held])
    cwd: str | None = None

    def describe(self) -> dict[str, Any]:
        """What it is, for `-v` and JSON documents: credentials in arguments masked, variables by name only."""
        return {"kind": "command", "argv": list(mask_argv(self.argv)), **_if(env=sorted(self.env), cwd=self.cwd)}

    def __str__(self) -> str:
        return shlex.join(mask_argv(self.argv))

    def __repr__(self) -> str:
        return f"CommandTarget({str(self)!r})"


@dataclass(frozen=True, slots=True)
class PackageTarget:
    """A published package, run through `npx -y` or `uvx`.

    Args:
        registry: `npm` or `pypi`.
        name: As the registry spells it; of PyPI with extras, if any.
        version: An exact version, or what the registry calls one (`latest`); none: the newest.
        args: What stands after the package on its command line.
    """

    registry: Literal["npm", "pypi"]
    name: str
    version: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, Held] = field(default_factory=dict[str, Held])

    def describe(self) -> dict[str, Any]:
        """What it is, for `-v` and JSON documents."""
        return {
            "kind": "package",
            "registry": self.registry,
            "name": self.name,
            **_if(version=self.version, args=list(mask_argv(self.args)), env=sorted(self.env)),
        }

    def __str__(self) -> str:
        joint = "@" if self.registry == "npm" else "=="
        spec = f"{self.registry}:{self.name}" + (f"{joint}{self.version}" if self.version else "")
        return shlex.join((spec, *mask_argv(self.args)))

    def __repr__(self) -> str:
        return f"PackageTarget({str(self)!r})"


@dataclass(frozen=True, slots=True)
class PythonTarget:
    """A server in Python: a file that runs one, or an object in a module or file.

    Args:
        source: The file's path, or the dotted name of the module.
        object: The object in it; none: the file is run as a child with this interpreter.
    """

    source: str
    object: str | None = None

    @property
    def is_file(self) -> bool:
        """Whether `source` is a file, not a module."""
        return self.source.endswith(".py")

    def describe(self) -> dict[str, Any]:
        """What it is, for `-v` and JSON documents."""
        return {"kind": "python", "file" if self.is_file else "module": self.source, **_if(object=self.object)}

    def __str__(self) -> str:
        return f"{self.source}:{self.object}" if self.object else self.source


@dataclass(frozen=True, slots=True)
class NamedTarget:
    """A server by its name in a configuration file.

    Args:
        name: Its name; none: the file's only server.
        file: The file that was named; none: `hotplug.toml`.
    """

    name: str | None
    file: str | None = None

    def describe(self) -> dict[str, Any]:
        """What it is, for `-v` and JSON documents."""
        return {"kind": "named", **_if(name=self.name, file=self.file)}

    def __str__(self) -> str:
        if self.file is None:
            return self.name or ""
        return f"{self.file}#{self.name}" if self.name else self.file


@dataclass(frozen=True, slots=True)
class NativeTarget:
    """A native server of the catalog, by its own scheme: `sqlite:///FILE` or `folder:DIR`.

    Args:
        scheme: `sqlite` or `folder`.
        path: The file or folder, as written; `:memory:` for SQLite in memory.
        me: The mail address of the calendar's owner, `?me=ADDRESS` after the path, percent-decoded (a `+` is one).
    """

    scheme: Literal["sqlite", "folder"]
    path: str
    me: str | None = None

    def describe(self) -> dict[str, Any]:
        """What it is, for `-v` and JSON documents."""
        return {"kind": "native", "scheme": self.scheme, "path": self.path, **_if(me=self.me)}

    def __str__(self) -> str:
        start = "sqlite:///" if self.scheme == "sqlite" else "folder:"
        return f"{start}{self.path}" + (f"?me={quote(self.me, safe='@+')}" if self.me else "")


@dataclass(frozen=True, slots=True)
class ObjectTarget:
    """A server object in this process: an `MCPServer`, a low-level `Server`, a `FastMCP`, or a provider of ours."""

    server: object

    def describe(self) -> dict[str, Any]:
        """What it is, for `-v` and JSON documents: the class, and the name it gives itself."""
        name = getattr(self.server, "name", None)
        return {
            "kind": "object",
            "class": _class_name(self.server),
            **_if(name=name if isinstance(name, str) else None),
        }

    def __str__(self) -> str:
        return f"{_class_name(self.server)} in process"


@dataclass(frozen=True, slots=True)
class EntryTarget:
    """A server's entry, as `mcpServers` files and `hotplug.toml` hold it.

    Args:
        launch: What the entry starts or reaches.
        name: Its name in the file; none: given as a dict.
        file: The file it stands in.
        rest: Keys of the entry that say nothing about starting it (`profile`, `prefix`, `disabled`, ...).
    """

    launch: HttpTarget | CommandTarget
    name: str | None = None
    file: str | None = None
    rest: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False, compare=False)

    def describe(self) -> dict[str, Any]:
        """What it is, for `-v` and JSON documents, with the file that was used."""
        return {"kind": "entry", **_if(name=self.name, file=self.file), "launch": self.launch.describe()}

    def __str__(self) -> str:
        return f"{self.name} ({self.launch})" if self.name else str(self.launch)


Target: TypeAlias = (
    HttpTarget | CommandTarget | PackageTarget | PythonTarget | NamedTarget | NativeTarget | ObjectTarget | EntryTarget
)
_TARGETS: Final = (
    HttpTarget,
    CommandTarget,
    PackageTarget,
    PythonTarget,
    NamedTarget,
    NativeTarget,
    ObjectTarget,
    EntryTarget,
)


def parse_target(value: object) -> Target:
    """The target that a string, a list of arguments, an entry or a server object means.

    A known scheme decides first; then a string with a blank is a command, split as a shell would and never run by one.

    Raises:
        ConfigError: The form is unknown or incomplete; the message lists the forms, or names the nearest.
    """
    if isinstance(value, _TARGETS):
        return value
    if isinstance(value, str):
        return _parse_text(value)
    if isinstance(value, Mapping):
        return _parse_mapping(cast("Mapping[str, Any]", value))
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return _parse_argv(cast("Sequence[object]", value))
    if value is None or isinstance(value, bytes | bytearray | int | float):
        raise ConfigError(f"{value!r} is not a target", hint=f"a target is {_FORMS}")
    return ObjectTarget(value)


def _parse_text(text: str) -> Target:
    text = text.strip()
    if not text:
        raise ConfigError("an empty string is not a target", hint=f"a target is {_FORMS}")
    scheme_match = _SCHEME.match(text)
    scheme = scheme_match[1].lower() if scheme_match else ""
    rest = text[len(scheme) + 1 :] if scheme_match else ""
    match scheme:
        case "http" | "https":
            return HttpTarget(_checked_url(text))
        case "npm" | "pypi":
            return _package(scheme, _split(rest, text))
        case "sqlite":
            rest, me = _owner(rest, text)
            return NativeTarget("sqlite", _sqlite_path(rest, text), me)
        case "folder":
            rest, me = _owner(rest, text)
            if not rest.removeprefix("//"):
                raise ConfigError(f"{text!r} names no folder", hint="write folder:DIR")
            return NativeTarget("folder", rest.removeprefix("//"), me)
        case _:
            pass
    if re.search(r"\s", text):
        return _command(_split(text, text), text)
    return _parse_word(text, scheme)


def _parse_word(word: str, scheme: str) -> Target:
    file, hash_sign, name = word.partition("#")
    if hash_sign and file.endswith((".json", ".toml")):
        if not name:
            raise ConfigError(f"{word!r} names no server after the #", hint="write file.json#name")
        return NamedTarget(name, file)
    if word.endswith((".json", ".toml")):
        return NamedTarget(None, word)
    if "://" in word:
        raise _unknown(word, scheme)
    if in_file := _FILE_OBJECT.fullmatch(word):
        return PythonTarget(in_file["file"], in_file["object"])
    if _MODULE_OBJECT.fullmatch(word):
        source, _, object_ = word.partition(":")
        # `sqlit:x` and `folders:x` are likelier slips than modules; a module can be written in full elsewhere.
        if near := _near_scheme(source):
            raise ConfigError(f"{word!r} is not a target", hint=f"did you mean {near}:{object_}?")
        return PythonTarget(source, object_)
    if _NAME.fullmatch(word):
        return NamedTarget(word)
    raise _unknown(word, scheme)


def _unknown(word: str, scheme: str) -> ConfigError:
    near = _near_scheme(scheme)
    if near:
        return ConfigError(
            f"{mask_url(word)!r} is not a target: unknown scheme {scheme!r}", hint=f"did you mean {near}:?"
        )
    if "/" in word and "://" not in word:
        return ConfigError(
            f"{word!r} is not a target",
            hint="a program goes after -- or into a list of arguments; a folder is folder:DIR",
        )
    return ConfigError(f"{mask_url(word)!r} is not a target", hint=f"a target is {_FORMS}")


def _near_scheme(scheme: str) -> str | None:
    found = difflib.get_close_matches(scheme.lower(), _SCHEMES, n=1, cutoff=0.75) if scheme else []
    return found[0] if found else None


def _parse_argv(value: Sequence[object]) -> Target:
    strays = [item for item in value if not isinstance(item, str)]
    if strays:
        raise ConfigError(f"a list of arguments holds only strings, not {strays[0]!r}")
    argv = [cast("str", item) for item in value]
    if argv and argv[0] == "--":
        argv = argv[1:]
    if not argv or not argv[0].strip():
        raise ConfigError("an empty command is not a target", hint=f"a target is {_FORMS}")
    scheme, colon, rest = argv[0].partition(":")
    if colon and scheme in {"npm", "pypi"}:
        return _package(scheme, [rest, *argv[1:]])
    if len(argv) == 1 and colon and scheme in _SCHEMES:
        return _parse_text(argv[0])
    return CommandTarget(tuple(argv))


def _parse_mapping(value: Mapping[str, Any]) -> Target:
    servers = value.get("mcpServers")
    if isinstance(servers, Mapping):
        table = cast("Mapping[str, Any]", servers)
        if len(table) != 1:
            raise ConfigError(
                f"the mcpServers table has {len(table)} servers: {', '.join(table) or 'none'}", hint="give one entry"
            )
        name, entry = next(iter(table.items()))
        return entry_target(entry, name=name)
    return entry_target(value)


def entry_target(entry: object, *, name: str | None = None, file: str | None = None) -> EntryTarget:
    """The target of one `mcpServers` or `[servers.NAME]` entry.

    Raises:
        ConfigError: Names the file, the server and the key that is wrong; never a value of `env` or `headers`.
    """
    where = "".join((f"{file}: " if file else "", f"server {name!r}: " if name else "the server entry: "))
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{where}an entry is a table with command or url, not {type(entry).__name__}")
    table = cast("Mapping[str, Any]", entry)
    command, url = table.get("command"), table.get("url", table.get("serverUrl"))
    if (command is None) == (url is None):
        seen = "both command and url" if command is not None else f"neither command nor url (keys: {_keys(table)})"
        raise ConfigError(f"{where}has {seen}", hint="an entry has one of them")
    known = {"command", "args", "env", "cwd"} if url is None else {"url", "serverUrl", "headers", "type", "transport"}
    rest = {key: item for key, item in table.items() if key not in known}
    if url is not None:
        if not isinstance(url, str):
            raise ConfigError(f"{where}url is a string, not {type(url).__name__}")
        kind = table.get("type", table.get("transport"))
        if kind == "sse":
            raise ConfigError(
                f"{where}the transport 'sse' (HTTP+SSE of 2024-11-05) isn't spoken", hint="use its streamable HTTP URL"
            )
        headers = _held_table(table.get("headers"), f"{where}headers")
        return EntryTarget(HttpTarget(_checked_url(url, where), headers), name, file, rest)
    argv = _argv_of(command, table.get("args"), where)
    cwd = table.get("cwd")
    if cwd is not None and not isinstance(cwd, str):
        raise ConfigError(f"{where}cwd is a string, not {type(cwd).__name__}")
    return EntryTarget(CommandTarget(argv, _held_table(table.get("env"), f"{where}env"), cwd), name, file, rest)


def _argv_of(command: object, args: object, where: str) -> tuple[str, ...]:
    if isinstance(command, str):
        first = [command]
    elif isinstance(command, Sequence) and all(isinstance(part, str) for part in cast("Sequence[object]", command)):
        first = list(cast("Sequence[str]", command))
    else:
        raise ConfigError(f"{where}command is a string")
    if not first or not first[0]:
        raise ConfigError(f"{where}command is empty")
    if args is None:
        return tuple(first)
    if not isinstance(args, Sequence) or isinstance(args, str):
        raise ConfigError(f"{where}args is a list of strings, not {type(args).__name__}")
    rest: list[str] = []
    for index, argument in enumerate(cast("Sequence[object]", args)):
        # Numbers are a frequent slip in these files and mean only one thing.
        if isinstance(argument, bool) or not isinstance(argument, str | int | float):
            raise ConfigError(f"{where}args[{index}] is a string, not {type(argument).__name__}")
        rest.append(str(argument))
    return (*first, *rest)


def _held_table(value: object, where: str) -> dict[str, Held]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where} is a table of strings, not {type(value).__name__}")
    return {str(name): held(item, f"{where}.{name}") for name, item in cast("Mapping[object, object]", value).items()}


def _checked_url(url: str, where: str = "") -> str:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"{where}{mask_url(url)!r} is not a URL: {error}") from None
    if re.search(r"\s", url) or parts.scheme.lower() not in {"http", "https"} or not parts.hostname or port == 0:
        raise ConfigError(f"{where}{mask_url(url)!r} is not a URL of a server", hint="write https://host[:port]/path")
    return url


def _split(text: str, whole: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"the command {whole!r} can't be split: {error}", hint="give a list of arguments") from None


def _command(words: list[str], whole: str) -> CommandTarget:
    env: dict[str, Held] = {}
    while words and (assignment := _ASSIGNMENT.fullmatch(words[0])):
        env[assignment["name"]] = held(assignment["value"], assignment["name"])
        words = words[1:]
    if not words:
        raise ConfigError("the command has only assignments, and nothing to run", hint="write NAME=value command …")
    for word in words:
        if word in _OPERATORS:
            raise ConfigError(
                f"the command holds the shell operator {word!r}, and no shell runs it",
                hint=f"give a list of arguments, or run a shell yourself: sh -c {shlex.quote(whole)}"
                if not env
                else "give a list of arguments, or run a shell yourself with sh -c",
            )
    return CommandTarget(tuple(words), env)


def _package(registry: str, words: list[str]) -> PackageTarget:
    spec = words[0] if words else ""
    found = (_NPM if registry == "npm" else _PYPI).fullmatch(spec)
    if found is None:
        form = "npm:package[@version]" if registry == "npm" else "pypi:package[==version]"
        raise ConfigError(f"{f'{registry}:{spec}'!r} names no package", hint=f"write {form}")
    extras = re.sub(r"\s", "", found["extras"] or "") if registry == "pypi" else ""
    return PackageTarget(
        cast("Literal['npm', 'pypi']", registry), found["name"] + extras, found["version"], tuple(words[1:])
    )


def _owner(rest: str, text: str) -> tuple[str, str | None]:
    """A native server's path, and the address after a `?me=` at its end; any other `?` is part of the path.

    An address after another name is a slip, not a path: it would be a new, empty calendar.
    """
    found = _SETTING.fullmatch(rest)
    if found is None:
        return rest, None
    address = unquote(found["value"]).strip()
    if found["name"] != "me":
        if "@" not in address:
            return rest, None
        raise ConfigError(
            f"{text!r} has the setting {found['name']!r}, which a native server doesn't know",
            hint="what it knows is me, its owner's mail address: ?me=me@example.org",
        )
    if not address or "&" in found["value"]:
        raise ConfigError(f"{text!r} names no address after ?me=", hint="write one address: ?me=me@example.org")
    return found["path"], address


def _sqlite_path(rest: str, text: str) -> str:
    if rest in {"//", "///:memory:", "//:memory:"}:
        return ":memory:"
    path = rest.removeprefix("///")
    if not rest.startswith("///") or not path:
        raise ConfigError(
            f"{text!r} names no file", hint="write sqlite:///FILE, or sqlite:////FILE for an absolute path"
        )
    return path


def _keys(table: Mapping[str, Any]) -> str:
    return ", ".join(map(str, table)) or "none"


def _class_name(value: object) -> str:
    cls = cast("type[object]", value if isinstance(value, type) else type(value))
    return f"{cls.__module__}.{cls.__qualname__}"


def _if(**values: Any) -> dict[str, Any]:
    """Only what there is: a description shows no empty fields."""
    return {name: value for name, value in values.items() if value not in (None, [], (), {})}
