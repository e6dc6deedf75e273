"""The seam between a typed client and whatever answers it: an MCP session, or a runtime in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["Channel", "Reply"]


@dataclass(frozen=True)
class Reply:
    """What came back of one call: structured content, text where there was only text, and the error flag."""

    content: Mapping[str, Any] | None
    is_error: bool = False
    text: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Channel(Protocol):
    """Carries calls of tools.

    Nothing is sent twice by a channel: whether a repeat is safe is the client's decision, from the contract.
    """

    @property
    def target(self) -> str:
        """What it leads to, as a person would say it."""
        ...

    @property
    def extensions(self) -> Mapping[str, Any]:
        """What the server advertised: `capabilities.extensions`, in the old era `experimental` too."""
        ...

    async def tools(self) -> Sequence[Mapping[str, Any]]:
        """Every tool that the server lists, all pages."""
        ...

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        meta: Mapping[str, Any],
        timeout: float | None = None,  # noqa: ASYNC109  # what the far end is told is the channel's
    ) -> Reply:
        """Call a tool once.

        Args:
            timeout: Seconds; None for the channel's default.

        Raises:
            Disconnected, Timeout: `details["state"]` is `unknown` where the request may have been read.
        """
        ...

    async def restore(self) -> None:
        """Make a lost connection usable again; nothing where it isn't lost."""
        ...

    async def aclose(self) -> None: ...
