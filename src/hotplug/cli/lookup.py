"""Which profile a word on the command line means: a name of the catalog, a file, or `module:Class`."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hotplug.cli.printing import did_you_mean
from hotplug.errors import ConfigError

if TYPE_CHECKING:
    from hotplug.profile import Definition, Profile

__all__ = ["Found", "find_profile", "known_profiles"]

_HOW = "name one of the catalog, a profile.json (- for stdin), module:Class or file.py:Class"


@dataclass(frozen=True)
class Found:
    """A profile and where it came from."""

    profile: type[Profile]
    origin: str

    @property
    def definition(self) -> Definition:
        return self.profile.definition

    @property
    def document(self) -> dict[str, Any]:
        return self.definition.document()


def known_profiles() -> Mapping[str, str]:
    """The profiles that have a name here, each with its `module:Class`: the catalog, and what other packages bring."""
    from hotplug.catalog import PROFILES

    others = {entry.name: entry.value for entry in entry_points(group="hotplug.profiles")}
    return {**others, **PROFILES}


def find_profile(word: str) -> Found:
    """The profile that `word` means. A name wins over a file of the same name: write `./name` for the file.

    Raises:
        ConfigError: It means nothing, or something that isn't a profile.
        ProfileError: It is a document, and a wrong one.
    """
    known = known_profiles()
    if word in known:
        return Found(_class(known[word], word), known[word])
    if word == "-":
        return Found(_document(sys.stdin.buffer.read(), "stdin"), "stdin")
    module, colon, name = word.rpartition(":")
    if colon and name.isidentifier() and module:
        return Found(_class(word, word), word)
    path = Path(word)
    if path.is_file():
        return Found(_document(path.read_bytes(), word), str(path))
    if path.is_dir() and (path / "profile.json").is_file():
        return Found(_document((path / "profile.json").read_bytes(), word), str(path / "profile.json"))
    if path.suffix or len(path.parts) > 1:
        raise ConfigError(f"there is no file {word}", hint=_HOW)
    raise ConfigError(f"no profile is called {word!r}", hint=did_you_mean(word, known) or _HOW)


def _document(content: bytes, where: str) -> type[Profile]:
    from hotplug.errors import ProfileError
    from hotplug.profile import Profile
    from hotplug.profile.canonical import parse

    try:
        document = parse(content)
        if not isinstance(document, dict):
            raise ProfileError("it holds no JSON object")
        members = cast("dict[str, Any]", document)
        return Profile.load(members, parent=_parent(members))
    except ProfileError as error:
        raise ProfileError(f"{where}: {error.message}", hint=error.hint) from error


def _parent(document: Mapping[str, Any]) -> type[Profile] | None:
    """The catalog's profile that a document extends; without one its parts are those that it writes itself."""
    known = known_profiles()
    extends = cast("Mapping[str, object]", document.get("extends") or {})
    name = next((one for one in extends if one in known), None)
    return _class(known[name], name) if name else None


def _class(spec: str, word: str) -> type[Profile]:
    from hotplug.profile import Profile

    place, _, name = spec.rpartition(":")
    found = getattr(_module(place, word), name, None)
    if not (isinstance(found, type) and issubclass(found, Profile)) or not hasattr(found, "definition"):
        raise ConfigError(f"{word}: {name} in {place} isn't a profile's class", hint=_HOW)
    return found


def _module(place: str, word: str) -> Any:
    if place.endswith(".py"):
        path = Path(place)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if not path.is_file() or spec is None or spec.loader is None:
            raise ConfigError(f"{word}: there is no file {place}", hint=_HOW)
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        return module
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return import_module(place)
    except ModuleNotFoundError as error:
        raise ConfigError(f"{word}: {error}", hint="is it installed, or in the folder you are in?") from error
