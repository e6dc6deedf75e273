"""The names of this page: keys, built-in profiles, what a profile and a thread may be called, and near names."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

__all__ = [
    "ALL",
    "BUILT_IN",
    "DEFAULT",
    "HOST_ONLY",
    "INHERIT",
    "PERSON_KEYS",
    "PICKS",
    "PROFILES",
    "PROJECTS",
    "RESERVED",
    "SUBAGENT",
    "is_profile_name",
    "is_thread_id",
    "listed",
    "near",
    "path_text",
    "quoted",
    "spelled_as",
]

PROFILES: Final = "mcpProfiles"
DEFAULT: Final = "mcpProfile"
SUBAGENT: Final = "mcpSubagentProfile"
PICKS: Final = "mcpThreadProfiles"
PROJECTS: Final = "projects"
PERSON_KEYS: Final = (PROFILES, DEFAULT, SUBAGENT, PICKS, PROJECTS)
"""The keys that only a person may write."""

ALL: Final = "all"
HOST_ONLY: Final = "host-only"
BUILT_IN: Final = (ALL, HOST_ONLY)
INHERIT: Final = "inherit"
RESERVED: Final = (*BUILT_IN, INHERIT)
"""What no profile may be called."""

_PROFILE: Final = re.compile(r"[a-z0-9_-]{1,64}")
_THREAD: Final = 256
_PLAIN_STEP: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_PATH_MARKS: Final = re.compile(r"[./\\:\[\]]+")
_WORD: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_CLOSE: Final = 0.6


def is_profile_name(name: str) -> bool:
    """1 to 64 of `a-z 0-9 - _`, and none of `all`, `host-only`, `inherit`."""
    return _PROFILE.fullmatch(name) is not None and name not in RESERVED


def is_thread_id(name: str) -> bool:
    """1 to 256 characters, no blank at an end, none that controls a terminal, no half of a surrogate pair."""
    return (
        0 < len(name) <= _THREAD
        and name == name.strip()
        and not any(unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp") for one in name)
    )


def near(name: str, known: Iterable[str], *, most: int = 3) -> tuple[str, ...]:
    """Known names that are close to this one, the closest first.

    Another case or other separators count as closest; then come those that are written alike, then those that share a
    word: `lookup-page` for `find-page`.
    """
    names = sorted(set(known) - {name})
    plain, words = _plain(name), _words(name)
    same = [one for one in names if _plain(one) == plain]
    lower = {one.lower(): one for one in names if one not in same}
    close = difflib.get_close_matches(name.lower(), lower, n=most, cutoff=_CLOSE)
    sharing = [one for one in lower if one not in close and words & _words(one)]
    close += difflib.get_close_matches(name.lower(), sharing, n=most, cutoff=0.0)
    return tuple((same + [lower[one] for one in close])[:most])


def spelled_as(name: str, keys: Sequence[str] = PERSON_KEYS, *, steps: bool = False) -> str | None:
    """The key that a name spells, in any case, with any separators; None for none.

    `mcp_profile` and `MCP-Profile` spell `mcpProfile`; with `steps` a path through it does too: `settings.mcpProfile`.
    """
    spelled = {_plain(step) for step in (name, *(_PATH_MARKS.split(name) if steps else ()))}
    return next((key for key in keys if _plain(key) in spelled), None)


@lru_cache(maxsize=4096)
def path_text(path: tuple[str, ...]) -> str:
    """A place in the settings as a person writes it: `mcpThreadProfiles.t1`, `projects["a b"].mcpProfile`."""
    found = ""
    for step in path:
        if not _PLAIN_STEP.fullmatch(step):
            found += f"[{quoted(step)}]"
        else:
            found += f".{step}" if found else step
    return found


def quoted(name: str) -> str:
    """A name in double quotes, on one line and short, whatever it holds."""
    if len(name) <= 80 and name.isprintable() and '"' not in name and "\\" not in name:
        return f'"{name}"'
    shown = "".join(one if one.isprintable() and one not in '"\\' else _escaped(one) for one in name[:80])
    return f'"{shown}{"…" if len(name) > 80 else ""}"'


def listed(names: Sequence[str], *, last: str = "or", most: int = 8) -> str:
    """Names in quotes as a person lists them: `"a", "b" or "c"`."""
    shown = [quoted(one) for one in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most} more"
    return f" {last} ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def _escaped(one: str) -> str:
    return f"\\{one}" if one in '"\\' else one.encode("unicode_escape").decode()


def _words(name: str) -> set[str]:
    """The words of a name that are long enough to mean something."""
    return {word.lower() for word in _WORD.findall(name) if len(word) > 3}


def _plain(name: str) -> str:
    """The letters and digits of a name, without case: what is left when nobody cares how it is spelled."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return "".join(one for one in folded if one.isalnum())
