"""A drafted projection: which file it goes to, and what the draft is sure of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotplug.cli.printing import block
from hotplug.errors import ConfigError

if TYPE_CHECKING:
    from hotplug.projection.draft import Score

__all__ = ["free_path", "score_document", "scores_text"]


def free_path(to: Path | None, package: str) -> Path:
    """Where the draft goes: `to`, or the package's short name; neither file of it may exist.

    Raises:
        ConfigError: One exists, there is no such folder, or it doesn't end with `.yaml`.
    """
    from hotplug.cli.projection_freeze import tools_path

    short = re.sub(r"[^A-Za-z0-9._-]+", "-", package.rpartition(":")[2].rpartition("/")[2]).strip("-.") or "server"
    path = to or Path(f"{short}.yaml")
    if path.suffix not in {".yaml", ".yml"}:
        raise ConfigError(f"{path} is no name of a projection's document", hint=f"name it {path}.yaml")
    if not path.parent.is_dir():
        raise ConfigError(f"there is no folder {path.parent}")
    for file in (path, tools_path(path)):
        if file.exists():
            raise ConfigError(f"{file} exists already", hint="name another file with -o, or move this one away")
    return path


def score_document(score: Score) -> dict[str, Any]:
    """One operation's score as data."""
    body: dict[str, Any] = {"member": score.member, "tool": score.tool, "score": score.score}
    if score.action:
        body["action"] = {"parameter": score.action[0], "value": score.action[1]}
    body["arguments"] = [
        {"parameter": ".".join(one.parameter), "field": one.field and ".".join(one.field), "score": one.score}
        for one in score.arguments
    ]
    body["others"] = [{"tool": tool, "score": value} for tool, value in score.others]
    return body


def scores_text(scores: Sequence[Score], *, sure: float) -> str:
    """The scores as text: a mark, the operation, the tool, and each argument with its field."""
    lines: list[str] = []
    width = max((len(score.member) for score in scores), default=0)
    for score in scores:
        mark = "✗" if score.tool is None else "✓" if score.score >= sure else "?"
        others = ", ".join(f"{tool} {value:.2f}" for tool, value in score.others)
        tool = score.tool or "no tool comes near enough"
        action = f" ({score.action[0]}={score.action[1]})" if score.action else ""
        lines.append(
            f"{mark} {score.member:<{width}}  {score.score:.2f}  {tool}{action}"
            + (f"; else {others}" if others else "")
        )
        for one in score.arguments:
            field = ".".join(one.field) if one.field else "nothing fits"
            lines.append(f"  {'':<{width}}  {one.score:.2f}    {'.'.join(one.parameter)} ← {field}")
    return block(lines)
