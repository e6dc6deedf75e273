"""`hotplug init`: writes the owner's hotplug.toml."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotplug.cli.asking import Asking
from hotplug.cli.command import command, group
from hotplug.cli.config_option import ConfigOption
from hotplug.cli.failure import Exit
from hotplug.cli.output import Output
from hotplug.cli.printing import block
from hotplug.errors import ConfigError

if TYPE_CHECKING:
    from hotplug.gateway.importing import FoundSecret, Imported, LeftOut, Place
    from hotplug.gateway.writing import KeptSecret, Settled

app = group("Write a hotplug.toml.")


class Keep(StrEnum):
    """Where secrets that stand in plain in a client's file are kept."""

    FILE = "file"
    KEYRING = "keyring"
    ENV = "env"
    PLAIN = "plain"


class Names(StrEnum):
    """How names are written for clients."""

    DOTTED = "dotted"
    UNDERSCORED = "underscored"


@command(app, "init")
def init(
    out: Output,
    config: ConfigOption = None,
    imports: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            help="A file of servers of Claude Desktop, Claude Code, Cursor or VS Code; `auto` finds those that are "
            "here. May be given several times.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    secrets: Annotated[
        Keep | None,
        typer.Option(
            help="Where what looks like a secret is moved to. [default: asks; file with --yes]", show_default=False
        ),
    ] = None,
    names: Annotated[
        Names | None,
        typer.Option(help="How names are written for clients. [default: dotted]", show_default=False),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a file that is there; it is kept.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing: every question has its default.")] = False,
) -> int:
    """Write the gateway's hotplug.toml: from scratch, or with the servers that other clients have.

    The files of those clients are only read. What `auto` finds in the folder's own files (.mcp.json, .cursor, .vscode)
    is set up disabled with --yes: a repository may have brought it. A variable that an entry names (${TOKEN},
    ${input:token}) becomes a secret with a place of its own; a value that looks like a secret is moved to one, if you
    want that.

    Exit codes: 0 written, 1 not wanted in the end, 2 there is such a file already, or one can't be used.
    """
    from hotplug.gateway.changing import keep_secret, write_config
    from hotplug.gateway.config_file import default_config_path
    from hotplug.gateway.importing import merged
    from hotplug.gateway.writing import new_file, settle

    asking = Asking(yes)
    path = (config or default_config_path()).expanduser()
    out.used(f"configuration: {path}")
    if path.exists() and not replace:
        replace = asking.anybody and asking.confirm(
            f"{path} is there already. Replace it, and keep it under another name?", default=False, flag="--replace"
        )
        if not replace:
            raise ConfigError(f"{path} exists already", hint="--replace keeps it under another name")
    found, left_out = _found(out, asking, list(imports or ()))
    taken = merged(found)
    keep = _keeping(asking, taken, secrets)
    settled = settle(taken, keep)
    _check_keyring(settled)
    text = new_file(settled, serve={"names": names.value} if names else None)
    for secret in settled.secrets:
        if secret.value is not None and secret.file is not None:
            keep_secret(path.parent / secret.file, secret.value)
        elif secret.value is not None and secret.keeping == "keyring":
            _into_keyring(secret)
    kept = write_config(path, text, replace=replace)
    body = {
        "file": str(path),
        "kept": str(kept) if kept else None,
        "servers": [_server(one) for one in settled.servers],
        "leftOut": [{"name": one.name, "source": one.source, "reason": one.reason} for one in left_out],
        "secrets": [_secret(one) for one in settled.secrets],
        "plain": list(settled.plain),
    }
    out.answer("hotplug.init/1", body, lambda: _text(path, kept, settled, left_out))
    return Exit.YES


def _found(out: Output, asking: Asking, words: Sequence[str]) -> tuple[list[Imported], list[LeftOut]]:
    from hotplug.gateway.importing import Imported, Place, client_of, unlooked

    places: list[Place] = []
    for word in words:
        if word == "auto":
            places += _here(out, asking)
        else:
            path = Path(word).expanduser()
            places.append(Place(client_of(path.absolute()), path))
    if not words and asking.anybody:
        places = _here(out, asking)
    found: list[Imported] = []
    left_out: list[LeftOut] = []
    for place in places:
        for one in _read(place):
            if isinstance(one, Imported):
                # A repository that was fetched must not have its commands run because somebody asked nothing.
                found.append(unlooked(one) if place.local and asking.yes else one)
            else:
                left_out.append(one)
    return found, left_out


def _here(out: Output, asking: Asking) -> list[Place]:
    """The files of other clients that are here and hold servers, if they are wanted."""
    from hotplug.gateway.importing import known_places

    holding: list[Place] = []
    for place in known_places(home=Path.home(), platform=sys.platform, environ=os.environ, folder=Path.cwd()):
        if not place.path.is_file():
            continue
        try:
            count = len(_read(place))
        except ConfigError as error:
            out.note(f"warning: {error}")
            continue
        if count:
            out.note(f"found {place.path}: {count} server{'s' if count != 1 else ''} of {_TITLES[place.client]}")
            holding.append(place)
    if not holding:
        out.note("no other client has servers here")
        return []
    wanted = asking.confirm("Take these servers over?", default=True, flag="--import FILE")
    return holding if wanted else []


_TITLES = {
    "claude-desktop": "Claude Desktop",
    "claude-code": "Claude Code",
    "cursor": "Cursor",
    "vscode": "VS Code",
    "other": "another client",
}


def _read(place: Place) -> tuple[Imported | LeftOut, ...]:
    from hotplug.gateway.config_file import read_text
    from hotplug.gateway.importing import import_file

    text = read_text(place.path)
    if text is None:
        raise ConfigError(f"there is no file {place.path}")
    path = place.path.absolute()
    return import_file(text, path=path, home=Path.home(), environ=os.environ, client=place.client)


def _keeping(asking: Asking, found: Sequence[Imported], wanted: Keep | None) -> Any:
    """Where each secret in plain goes; asked once for all of them."""
    in_plain = [f"{one.name}: {secret.place}" for one in found for secret in one.secrets if secret.value is not None]
    if wanted is None and in_plain:
        listed = "\n".join(f"  {place}" for place in in_plain)
        wanted = Keep(
            asking.choose(
                f"These look like secrets in plain:\n{listed}\nWhere shall they be kept?",
                _PLACES,
                default=Keep.FILE.value,
                flag="--secrets file|keyring|env|plain",
            )
        )

    def keep(one: Imported, secret: FoundSecret) -> str:
        return wanted.value if wanted else Keep.PLAIN.value

    return keep


_PLACES: Mapping[str, str] = {
    "file": "a file each, beside hotplug.toml, that only you can read",
    "keyring": "the system's keyring",
    "env": "variables of the environment, that you set yourself",
    "plain": "hotplug.toml itself, with a warning each time it is read",
}


def _check_keyring(settled: Settled) -> None:
    if any(one.keeping == "keyring" for one in settled.secrets):
        from importlib.util import find_spec

        if find_spec("keyring") is None:
            raise ConfigError(
                "the package keyring is not installed", hint="pip install 'hotplug[keyring]', or --secrets file"
            )


def _into_keyring(secret: KeptSecret) -> None:
    import keyring  # pyright: ignore[reportMissingImports]

    ring: Any = keyring  # pyright: ignore[reportUnknownVariableType]
    try:
        ring.set_password("hotplug", secret.name, secret.value)
    except Exception as error:  # its backends raise what they like
        raise ConfigError(f"the keyring failed ({type(error).__name__})", hint="--secrets file") from None


def _server(one: Imported) -> dict[str, Any]:
    return {
        "name": one.name,
        "source": one.source,
        "client": one.client,
        "disabled": one.disabled,
        "notes": list(one.notes),
    }


def _secret(one: KeptSecret) -> dict[str, Any]:
    body: dict[str, Any] = {"name": one.name, "keeping": one.keeping, "servers": list(one.servers)}
    if one.variable:
        body |= {"variable": one.variable, "set": bool(os.environ.get(one.variable))}
    if one.file:
        body["file"] = one.file
    return body


def _text(path: Path, kept: Path | None, settled: Settled, left_out: Sequence[LeftOut]) -> str:
    lines = [f"{path} is written"]
    if kept:
        lines.append(f"what was there is kept as {kept}")
    for one in settled.servers:
        state = ", disabled" if one.disabled else ""
        lines.append(f"  {one.name}{state}  from {one.source}")
        lines += [f"    {note}" for note in one.notes]
    lines += [f"  left out: {one.name} of {one.source}: {one.reason}" for one in left_out]
    for secret in settled.secrets:
        where = secret.variable or secret.file or "the keyring"
        missing = ", which isn't set" if secret.variable and not os.environ.get(secret.variable) else ""
        lines.append(f"  secret {secret.name}: in {where}{missing}")
    lines += [f"  warning: {place} is a secret in plain" for place in settled.plain]
    lines.append(
        "next: hotplug doctor" if settled.servers else "next: hotplug server add NAME TARGET, then hotplug doctor"
    )
    return block(lines)
