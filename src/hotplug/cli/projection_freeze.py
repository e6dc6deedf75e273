"""Freezing a projection: its digests written into the text, comments and layout kept, the tool list beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotplug.cli.files import read_text
from hotplug.cli.projection_check import findings_of
from hotplug.errors import ProjectionError

if TYPE_CHECKING:
    from hotplug.projection import Source
    from hotplug.projection.coverage import Finding

__all__ = ["Frozen", "freeze", "tools_path", "tools_text"]


@dataclass(frozen=True)
class Frozen:
    """What freezing comes to; nothing is written yet.

    Args:
        findings: What speaks against it: any error refuses it.
        texts: The whole text of each file.
    """

    source: Source
    findings: tuple[Finding, ...]
    texts: Mapping[Path, str]
    code_digest: str | None

    @property
    def refused(self) -> bool:
        return any(finding.level == "error" for finding in self.findings)


def freeze(path: Path, tools: Sequence[Mapping[str, Any]]) -> Frozen:
    """The frozen text of a document and of its tool list, and what a check of it finds.

    Raises:
        ProjectionError: The document can't be read or is wrong.
    """
    from hotplug.projection import parse, tools_digest
    from hotplug.projection.files import code_file
    from hotplug.projection.fingerprint import code_digest

    text = _read(path)
    before = parse(text, path.name)
    text = _with(text, path, ("upstream", "tools"), tools_digest(tools), after="versions")
    code = code_file(path, before.document)
    digest = code_digest(code) if code is not None and code.is_file() else None
    if digest is not None:
        text = _with(text, path, ("codeDigest",), digest, after="code")
    source = parse(text, path.name)
    texts = {tools_path(path): tools_text(tools), path: text}
    return Frozen(source, findings_of(source, tools, path), texts, digest)


def tools_path(path: Path) -> Path:
    """Where the tool list of a document lies."""
    return path.with_name(f"{path.stem}.tools.json")


def tools_text(tools: Sequence[Mapping[str, Any]]) -> str:
    """The text of a tool list: one order of keys, so that two of them compare line by line."""
    text = json.dumps({"tools": list(tools)}, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # Half a pair of surrogates in a server's prose: JSON can say it, UTF-8 can't.
        return json.dumps({"tools": list(tools)}, indent=1, sort_keys=True) + "\n"
    return text


def _read(path: Path) -> str:
    # Not read_text: line ends stay as they are.
    if read_text(path) is None:
        raise ProjectionError(f"there is no file {path}")
    return path.read_bytes().decode("utf-8")


def _with(text: str, path: Path, keys: tuple[str, ...], value: str, *, after: str) -> str:
    """The text with a digest at a key, put beside its sibling where that is one line; nothing else may change."""
    from hotplug.projection import parse
    from hotplug.projection.located import put

    wanted = _tree(text, path)
    at = wanted
    for name in keys[:-1]:
        at = at[name]
    if at.get(keys[-1]) == value:
        return text
    at[keys[-1]] = value
    for candidate in (*_beside(text, path, keys, value, after), put(text, keys, value)):
        try:
            if _tree(candidate, path) == wanted:
                parse(candidate, path.name)
                return candidate
        except ProjectionError:
            continue
    raise ProjectionError(f"{path.name}: {'.'.join(keys)} can't be written", hint=f"write {keys[-1]}: {value} yourself")


def _tree(text: str, path: Path) -> Any:
    from hotplug.projection.located import located

    return located(text, path.name)[0]


def _beside(text: str, path: Path, keys: tuple[str, ...], value: str, after: str) -> Iterator[str]:
    """The text with a new line after a sibling, where the key isn't there yet."""
    from hotplug.projection.located import located

    _, lines = located(text, path.name)
    if keys in lines:
        return
    number = lines.get((*keys[:-1], after))
    if number is None:
        return
    every = text.splitlines(keepends=True)
    sibling = re.match(rf"(\s*){re.escape(after)}:", every[number - 1])
    if sibling is None:
        return
    end = "\r\n" if every[number - 1].endswith("\r\n") else "\n"
    yield "".join([*every[:number], f"{sibling[1]}{keys[-1]}: {value}{end}", *every[number:]])
