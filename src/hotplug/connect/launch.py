"""From a target to what is started or reached: programs found, objects imported, names looked up, secrets put in."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from hotplug.connect.masking import Masker, argv_secrets, mask_argv, url_secrets
from hotplug.connect.secrets import Destination, NoSecrets, Secrets, resolve
from hotplug.connect.serversfile import ServersFile, find_server
from hotplug.connect.target import (
    CommandTarget,
    EntryTarget,
    HttpTarget,
    NamedTarget,
    NativeTarget,
    ObjectTarget,
    PackageTarget,
    PythonTarget,
    Target,
)
from hotplug.errors import ConfigError

__all__ = [
    "BASE_ENVIRONMENT",
    "HttpLaunch",
    "Launch",
    "MissingProgram",
    "ObjectLaunch",
    "StdioLaunch",
    "base_environment",
    "launch_of",
]


class MissingProgram(ConfigError):
    """A command's program isn't on this machine, or can't be run."""


BASE_ENVIRONMENT: Final = (
    # Finding programs, the home, the locale and the time zone.
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "TMP", "TEMP",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
    # What uvx and npx need to reach a registry and to keep what they fetched.
    "UV_*", "PIP_*", "npm_config_*", "NPM_CONFIG_*", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
    "http_proxy", "https_proxy", "no_proxy", "all_proxy",
    # Windows can't start a program without these.
    "APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA",
    "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "USERNAME", "USERPROFILE", "WINDIR",
)  # fmt: skip
"""The variables of ours that a child gets beside its entry's; `*` at the end means any with that start."""


@dataclass(frozen=True, slots=True)
class StdioLaunch:
    """A child to start: absolute program, arguments, whole environment.

    Args:
        secrets: The secret values in `env`, to be masked wherever the child's text goes.
    """

    argv: tuple[str, ...] = field(repr=False)
    env: Mapping[str, str] = field(repr=False)
    cwd: str | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)
    own_env: tuple[str, ...] = ()

    def masker(self) -> Masker:
        """Masks the secrets, and the credentials that the entry gives in plain: in variables and in arguments."""
        return Masker.of({name: self.env[name] for name in self.own_env}, self.secrets, argv_secrets(self.argv))


@dataclass(frozen=True, slots=True)
class HttpLaunch:
    """A URL to reach, with its headers filled in."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def masker(self) -> Masker:
        """Masks the secrets, credential-like headers, and credentials in the URL."""
        inside = url_secrets(self.url)
        return Masker.of(dict(self.headers), (*self.secrets, *((self.url,) if inside else ())), inside)


@dataclass(frozen=True, slots=True)
class ObjectLaunch:
    """A server object in this process."""

    server: object

    def masker(self) -> Masker:
        """Masks nothing: what is in this process is ours."""
        return Masker()


Launch: TypeAlias = StdioLaunch | HttpLaunch | ObjectLaunch


def base_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Those of our variables that any child gets: `BASE_ENVIRONMENT`."""
    exact = {name for name in BASE_ENVIRONMENT if not name.endswith("*")}
    starts = tuple(name[:-1] for name in BASE_ENVIRONMENT if name.endswith("*"))
    source = os.environ if environ is None else environ
    # An exported shell function (`() { …`) is code, not a setting.
    return {
        name: value
        for name, value in source.items()
        if (name in exact or name.startswith(starts)) and not value.startswith("()")
    }


async def launch_of(
    target: Target,
    *,
    secrets: Secrets | None = None,
    files: tuple[ServersFile, ...] = (),
    name: str | None = None,
    thread: str | None = None,
) -> Launch:
    """What a target starts or reaches.

    Args:
        secrets: Where secret values come from; default: none are held, each is refused.
        files: Where names without a file are looked up, in this order.
        name: The server's name in secrets' places, where the target itself has none; default: the target as written.
        thread: For which alone it runs; a secret that lists threads goes to a server of one of these only.

    Raises:
        ConfigError: A program, module, object or name isn't found, or the target is a native server of the catalog.
        PermissionDenied: A secret may not go to this server.
    """
    held_by = secrets or NoSecrets()
    match target:
        case NamedTarget():
            return await launch_of(find_server(target, files), secrets=secrets, files=files, name=name, thread=thread)
        case EntryTarget():
            return await _launch(
                target.launch, held_by, Destination(server=target.name or name or str(target), runs_for=thread)
            )
        case CommandTarget() | HttpTarget():
            return await _launch(target, held_by, Destination(server=name or str(target), runs_for=thread))
        case PackageTarget():
            command = CommandTarget(package_argv(target), target.env)
            return await _launch(command, held_by, Destination(server=name or str(target), runs_for=thread))
        case PythonTarget(object=None):
            return StdioLaunch((sys.executable, str(_existing(target.source))), base_environment())
        case PythonTarget():
            return ObjectLaunch(import_object(target))
        case ObjectTarget():
            return ObjectLaunch(target.server)
        case NativeTarget():
            raise ConfigError(
                f"{target} is a native server of the catalog, not a program or URL",
                hint="hotplug.connect() opens it by its profile",
            )


async def _launch(target: CommandTarget | HttpTarget, secrets: Secrets, to: Destination) -> Launch:
    if isinstance(target, HttpTarget):
        headers, values = await resolve(target.headers, secrets, to)
        return HttpLaunch(target.url, headers, tuple(values))
    env, values = await resolve(target.env, secrets, to)
    whole = {**base_environment(), **env}
    program = find_program(target.argv[0], whole, target.cwd)
    return StdioLaunch((program, *target.argv[1:]), whole, target.cwd, tuple(values), tuple(env))


def package_argv(target: PackageTarget) -> tuple[str, ...]:
    """The command of a package: `npx -y name@version …` or `uvx name==version …`.

    Raises:
        ConfigError: npx or uvx is missing; says how to get it.
    """
    if target.registry == "npm":
        spec = f"{target.name}@{target.version}" if target.version else target.name
        return (find_program("npx", os.environ), "-y", spec, *target.args)
    if target.version is None:
        return (find_program("uvx", os.environ), target.name, *target.args)
    bare = target.name.partition("[")[0]
    joint = "@" if target.version == "latest" else "=="
    if target.name == bare:
        return (find_program("uvx", os.environ), f"{bare}{joint}{target.version}", *target.args)
    return (find_program("uvx", os.environ), "--from", f"{target.name}{joint}{target.version}", bare, *target.args)


_MISSING: Final = {
    "npx": "install Node.js 20 or newer: https://nodejs.org",
    "npm": "install Node.js 20 or newer: https://nodejs.org",
    "uvx": "install uv: pip install uv, or https://docs.astral.sh/uv",
    "uv": "install uv: pip install uv, or https://docs.astral.sh/uv",
    "docker": "install Docker, or start its daemon",
}


def find_program(program: str, env: Mapping[str, str], cwd: str | None = None) -> str:
    """The program's path: `uv` and `uvx` beside this interpreter first, else on the path of `env`.

    Raises:
        ConfigError: There is none, it can't be executed, or the working directory doesn't exist.
    """
    if cwd is not None and not Path(cwd).is_dir():
        raise ConfigError(f"the working directory {cwd} doesn't exist")
    if program in {"uv", "uvx"} and (beside := shutil.which(program, path=str(Path(sys.executable).parent))):
        return beside
    if os.sep in program or (os.altsep and os.altsep in program):
        path = Path(program).expanduser()
        absolute = path if path.is_absolute() or cwd is None else Path(cwd) / path
        if not absolute.exists():
            hint = "its arguments belong into args, each for itself" if " " in program.strip() else None
            raise MissingProgram(f"there is no program {mask_argv((program,))[0]}", hint=hint)
        if absolute.is_dir():
            raise MissingProgram(f"{program} can't be executed: it is a folder", hint="name the program in it")
        if not os.access(absolute, os.X_OK):
            python = f'a Python file is started by python: command = "python", args = ["{program}"]'
            raise MissingProgram(
                f"{program} can't be executed", hint=python if program.endswith(".py") else f"chmod +x {program}"
            )
        return str(absolute)
    found = shutil.which(program, path=env.get("PATH"))
    if found is None:
        hint = "its arguments belong into args, each for itself" if " " in program.strip() else _MISSING.get(program)
        raise MissingProgram(f"the program {mask_argv((program,))[0]!r} is not on the path", hint=hint)
    return found


def import_object(target: PythonTarget) -> object:
    """The object that a Python target names; a plain function without required parameters is called for it.

    Raises:
        ConfigError: The file, module or object is missing, or importing it failed (the cause is chained).
    """
    if target.is_file:
        path = _existing(target.source)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            raise ConfigError(f"{target.source} can't be imported")
        module = importlib.util.module_from_spec(spec)
        load = spec.loader.exec_module
    else:
        module, load = None, None
    try:
        if module is None or load is None:
            module = importlib.import_module(target.source)
        else:
            load(module)
    except Exception as error:  # a module may raise anything while it is imported
        raise ConfigError(f"importing {target.source} failed: {type(error).__name__}: {error}") from error
    found: Any = module
    for name in (target.object or "").split("."):
        if not hasattr(found, name):
            servers = [name for name, value in vars(module).items() if _serves(value)]
            hint = f"it has the server {servers[0]!r}" if servers else None
            raise ConfigError(f"{target.source} has no {target.object!r}", hint=hint)
        found = getattr(found, name)
    if inspect.isfunction(found):
        required = [p for p in inspect.signature(found).parameters.values() if p.default is p.empty and p.kind < 2]
        if not required and not inspect.iscoroutinefunction(found):
            try:
                return cast("object", found())
            except Exception as error:  # the factory is foreign code
                raise ConfigError(f"{target} failed: {type(error).__name__}: {error}") from error
    return found


def _existing(file: str) -> Path:
    path = Path(file).expanduser()
    if not path.is_file():
        raise ConfigError(f"there is no file {file}")
    return path


def _serves(value: object) -> bool:
    return type(value).__name__ in {"MCPServer", "Server", "FastMCP"}
