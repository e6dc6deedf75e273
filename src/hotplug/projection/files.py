"""The files of a projection: `x.yaml`, its tool list `x.tools.json`, and the Python of its `code` beside them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from hotplug.errors import ProjectionError
from hotplug.projection.document import Document, Source, parse
from hotplug.projection.fingerprint import Tool, code_digest, tools_digest
from hotplug.projection.located import put

__all__ = ["code_file", "freeze", "read", "tool_list"]


def read(path: Path) -> Source:
    """Reads a document from a file. Raises as `parse`, and `ProjectionError` where the file can't be read."""
    try:
        return parse(path.read_text(encoding="utf-8"), path.name)
    except (OSError, UnicodeDecodeError) as error:
        raise ProjectionError(f"{path}: can't be read: {error}") from error


def code_file(path: Path, document: Document) -> Path | None:
    """The Python file of a document's `code`, beside the document; `None` where it has none."""
    if document.code is None:
        return None
    return path.parent.joinpath(*document.code.split(":")[0].split(".")).with_suffix(".py")


def tool_list(path: Path) -> tuple[Tool, ...]:
    """The frozen tool list beside a document (`<stem>.tools.json`: a list, or `{tools: [...]}`).

    Raises:
        ProjectionError: It is missing or not a list of tools.
    """
    beside = path.with_name(f"{path.stem}.tools.json")
    try:
        found: Any = json.loads(beside.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ProjectionError(
            f"{beside}: the tool list can't be read: {error}", hint="`hotplug projection freeze` writes it"
        ) from error
    tools: Any = cast("dict[str, Any]", found).get("tools") if isinstance(found, dict) else found
    if not isinstance(tools, list) or not all(
        isinstance(tool, dict) and isinstance(cast("dict[str, Any]", tool).get("name"), str)
        for tool in cast("list[Any]", tools)
    ):
        raise ProjectionError(f"{beside}: is not a list of tools")
    return tuple(cast("list[Tool]", tools))


def freeze(path: Path, tools: Sequence[Tool]) -> Source:
    """Writes the digests of the tool list and of the code into a document, and the list beside it.

    Whether the projection is right is not asked here: `check` and its tests are for that, and come first.

    Raises:
        ProjectionError: It can't be read, or a `TODO` is still in it; nothing is written then.
    """
    source = read(path)
    for number, line in enumerate(source.text.splitlines(), 1):
        if re.search(r"\bTODO\b", line):
            raise ProjectionError(f"{path.name}:{number}: still to be decided: {line.strip()[:120]}")
    text = put(source.text, ["upstream", "tools"], tools_digest(tools))
    code = code_file(path, source.document)
    if code is not None:
        try:
            text = put(text, ["codeDigest"], code_digest(code))
        except OSError as error:
            raise ProjectionError(f"{source.where('code')}: {code} can't be read: {error}") from error
    frozen = parse(text, path.name)
    listed = json.dumps({"tools": list(tools)}, indent=1, ensure_ascii=False, sort_keys=True)
    _write(path.with_name(f"{path.stem}.tools.json"), f"{listed}\n")
    _write(path, text)
    return frozen


def _write(path: Path, text: str) -> None:
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(text, encoding="utf-8", newline="\n")
    beside.replace(path)
