"""Which published package a launch command runs: the key by which a projection is chosen.

A server's own name says nothing reliable (it equals its package's in 28 of 113 servers of the corpus), so the identity
is read from the command: `npx -y caldav-mcp@0.10.0`, `uvx --from x y`, `pipx run`, `npm exec`, ...
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final, Literal

from hotplug.connect.target import CommandTarget, EntryTarget, PackageTarget, Target

__all__ = ["PackageId", "package_of"]

_NPM_SPEC: Final = re.compile(r"(?P<name>(?:@[\w.~-]+/)?[\w.~][\w.~-]*)(?:@(?P<version>[^@/:]+))?")
_PYPI_SPEC: Final = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*(?P<rest>(?:@|[=<>!~]=?).*)?"
)
_EXACT: Final = re.compile(r"v?\d[\w.+!-]*")

_NPX_VALUES: Final = frozenset(
    {"-c", "--call", "-w", "--workspace", "--registry", "--prefix", "--cache", "--userconfig"}
)
_UVX_VALUES: Final = frozenset(
    {
        "--with", "-w", "--with-editable", "--with-requirements", "-p", "--python", "--index", "--index-url", "-i",
        "--extra-index-url", "--default-index", "-f", "--find-links", "--cache-dir", "--directory", "--project",
        "--config-file", "--refresh-package", "-P", "--upgrade-package", "--resolution", "--prerelease",
        "--exclude-newer", "--link-mode", "--env-file", "--color", "--python-platform", "--torch-backend",
        "--no-build-package", "--no-binary-package", "-b", "--build-constraints", "-c", "--constraints", "--overrides",
        "-C", "--config-setting", "--keyring-provider", "--allow-insecure-host", "--reinstall-package",
        "--index-strategy", "--no-build-isolation-package", "--fork-strategy",
    }
)  # fmt: skip
_PIPX_VALUES: Final = frozenset({"--python", "--index-url", "-i", "--pip-args", "--suffix"})


@dataclass(frozen=True, slots=True)
class PackageId:
    """A package as its registry knows it.

    Args:
        registry: `npm` or `pypi`.
        name: The registry's normal form (PyPI: lower case with `-`).
        version: Only an exact one; none where the command leaves it open.
    """

    registry: Literal["npm", "pypi"]
    name: str
    version: str | None = None

    def __str__(self) -> str:
        joint = "@" if self.registry == "npm" else "=="
        return f"{self.registry}:{self.name}" + (f"{joint}{self.version}" if self.version else "")


def package_of(target: Target) -> PackageId | None:
    """The package that a target runs, or none where it isn't a package or the command doesn't say.

    Unknown launchers, URLs, paths and Git sources give none rather than a guess. A named target has to be looked up
    first (`serversfile.find_server`).
    """
    match target:
        case PackageTarget():
            name = target.name.partition("[")[0]
            spec = f"{name}@{target.version}" if target.version else name
            return _npm(spec) if target.registry == "npm" else _pypi(spec)
        case CommandTarget():
            return _of_argv(target.argv)
        case EntryTarget(launch=CommandTarget() as command):
            return _of_argv(command.argv)
        case _:
            return None


def _of_argv(argv: Sequence[str]) -> PackageId | None:
    program = re.sub(r"\.(exe|cmd|bat|ps1)$", "", PurePath(argv[0].replace("\\", "/")).name.lower())
    rest = list(argv[1:])
    match program, rest:
        case (("npx" | "bunx" | "pnpx"), _):
            return _npm(_spec(rest, _NPX_VALUES, naming={"-p", "--package"}))
        case ("npm", ["exec" | "x", *after]) | ("pnpm" | "yarn", ["dlx", *after]) | ("bun", ["x", *after]):
            return _npm(_spec(after, _NPX_VALUES, naming={"-p", "--package"}))
        case "uvx", _:
            return _pypi(_spec(rest, _UVX_VALUES, naming={"--from"}))
        case "uv", ["tool", "run", *after]:
            return _pypi(_spec(after, _UVX_VALUES, naming={"--from"}))
        case "pipx", ["run", *after]:
            return _pypi(_spec(after, _PIPX_VALUES, naming={"--spec"}))
        case (("cmd" | "env"), ["/c", *after]) if program == "cmd":
            return _of_argv(after) if after else None
        case "env", _:
            while rest and (("=" in rest[0] and not rest[0].startswith("-")) or rest[0] in {"-i", "--"}):
                rest = rest[1:]
            return _of_argv(rest) if rest and not rest[0].startswith("-") else None
        case _:
            return None


def _spec(words: list[str], with_value: frozenset[str], *, naming: set[str]) -> str | None:
    """The word that names the package: what a naming option says, else the first that is no option."""
    named: str | None = None
    index = 0
    while index < len(words):
        word = words[index]
        option, equals, value = word.partition("=")
        if word == "--":
            first = words[index + 1] if index + 1 < len(words) else None
            return named or first
        if not word.startswith("-"):
            return named or word
        if option in naming:
            # Of several packages npx is given, the first is the one that its command belongs to.
            named = named or (value if equals else (words[index + 1] if index + 1 < len(words) else None))
            index += 1 if equals else 2
        elif option in with_value and not equals:
            index += 2
        else:
            index += 1
    return named


def _npm(spec: str | None) -> PackageId | None:
    found = _NPM_SPEC.fullmatch(spec) if spec else None
    if found is None or found["name"].startswith("."):
        return None
    version = found["version"]
    return PackageId("npm", found["name"], version.removeprefix("v") if version and _exact_npm(version) else None)


def _exact_npm(version: str) -> bool:
    return re.fullmatch(r"v?\d+\.\d+\.\d+(?:[-+][\w.+-]+)?", version) is not None


def _pypi(spec: str | None) -> PackageId | None:
    found = _PYPI_SPEC.fullmatch(spec) if spec else None
    if found is None:
        return None
    rest = (found["rest"] or "").strip()
    if rest.startswith("@") and ("/" in rest or ":" in rest):
        return None  # `name @ git+https://…`: another source than the registry
    exact = re.fullmatch(r"(?:===?|@)\s*(?P<version>\S+)", rest)
    version = exact["version"] if exact and _EXACT.fullmatch(exact["version"]) else None
    if version is not None and version.endswith(".*"):
        version = None
    return PackageId("pypi", re.sub(r"[-_.]+", "-", found["name"]).lower(), version)
