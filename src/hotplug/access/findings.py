"""One thing that a check found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Code", "Finding"]

Code = Literal[
    "unreadable_file",
    "marker",
    "given_twice",
    "broken_profile",
    "reserved_name",
    "bad_name",
    "bad_thread",
    "dangling",
    "inherit_here",
    "odd_key",
    "unknown_server",
    "unknown_group",
    "unknown_tool",
    "idle_rule",
    "past_the_cap",
    "tool_in_neither",
    "blank_name",
    "name_of_both",
    "ungrouped_nowhere",
    "person_key",
    "person_key_pattern",
    "open_input",
    "unresolved_ref",
]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that doesn't hold.

    Args:
        code: Stable, for programs.
        setting: Where, as a person writes the path.
        message: What was seen.
        fix: What to do about it.
        near: Known names that are close to the one that matches nothing.
    """

    code: Code
    setting: str
    message: str
    fix: str
    near: tuple[str, ...] = ()

    def document(self) -> dict[str, object]:
        """The finding for programs; `near` is left out where nothing is."""
        found: dict[str, object] = {
            "code": self.code,
            "setting": self.setting,
            "message": self.message,
            "fix": self.fix,
        }
        return {**found, "near": list(self.near)} if self.near else found

    def __str__(self) -> str:
        return f"{self.setting}: {self.message}: {self.fix}"
