"""Which era of the protocol a server speaks, told by what it does (FR-26).

A server is of the new era only if it answers `server/discover` as one, or refuses by a code of that era. Any other
answer, and silence for the probe limit, mean the old handshake. The finding is remembered per target in this process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from hotplug.errors import ConnectError

if TYPE_CHECKING:
    from mcp import ClientSession, MCPError

__all__ = ["Era", "EraChoice", "forget_eras", "negotiate", "remember_era", "remembered_era"]

Era: TypeAlias = Literal["modern", "legacy"]
EraChoice: TypeAlias = Literal["auto", "modern", "legacy"]

_eras: dict[str, Era] = {}
_LIMIT: Final = 4096


def remembered_era(key: str) -> Era | None:
    """The era found last for this target, in this process."""
    return _eras.get(key)


def remember_era(key: str, era: Era) -> None:
    """Keeps a finding; the oldest goes when there are too many."""
    _eras.pop(key, None)
    while len(_eras) >= _LIMIT:
        del _eras[next(iter(_eras))]
    _eras[key] = era


def forget_eras() -> None:
    """Forgets every finding (tests, and servers that were replaced)."""
    _eras.clear()


async def negotiate(
    session: ClientSession,
    era: EraChoice,
    *,
    probe_limit: float,
    halt: Callable[[bool], None],
    trying: Callable[[str], None],
) -> Era:
    """Brings up the session in the era that its server speaks.

    Args:
        era: `auto` probes; an era that is known is tried first, and the other one only if the server itself names it.
        probe_limit: Seconds of silence after which a probe counts as unanswered.
        halt: Called at each error, with whether it was the last word (not the probe's answer): raises where going on
            is useless (nothing listens, the credential is refused).
        trying: Told each revision before it is offered, for the error if it comes to one.

    Raises:
        ConnectError: It speaks only revisions that aren't known here.
        MCPError: The handshake was refused.
    """
    from mcp import MCPError
    from mcp_types import UNSUPPORTED_PROTOCOL_VERSION
    from mcp_types.version import (
        HANDSHAKE_PROTOCOL_VERSIONS,
        LATEST_HANDSHAKE_VERSION,
        LATEST_MODERN_VERSION,
        MODERN_PROTOCOL_VERSIONS,
    )

    version = LATEST_MODERN_VERSION
    for attempt in range(2):
        only: list[str] | None = None
        if era != "legacy":
            trying(version)
            try:
                raw = await _probe(session, version, probe_limit)
            except MCPError as error:
                halt(False)
                supported = _supported(error) if error.code == UNSUPPORTED_PROTOCOL_VERSION else None
                mutual = [known for known in MODERN_PROTOCOL_VERSIONS if known in (supported or ())]
                if mutual and attempt == 0:
                    version = mutual[-1]
                    continue
                if supported is not None and not set(supported) & set(HANDSHAKE_PROTOCOL_VERSIONS):
                    raise _foreign(supported) from error
            else:
                only = _adopt(session, raw)
                if only is not None and not only:
                    return "modern"
        trying(LATEST_HANDSHAKE_VERSION)
        try:
            await session.initialize()
        except MCPError as error:
            halt(True)
            supported = _supported(error)
            if error.code == UNSUPPORTED_PROTOCOL_VERSION and attempt == 0:
                # The refusal is itself the new era's: a late probe has settled it, or it was remembered wrong.
                mutual = [known for known in MODERN_PROTOCOL_VERSIONS if known in (supported or ())]
                if mutual:
                    version, era = mutual[-1], "auto"
                    continue
            if only or (error.code == UNSUPPORTED_PROTOCOL_VERSION and supported):
                raise _foreign(only or supported or []) from error
            raise
        except RuntimeError as error:
            # The SDK's words for a handshake answered with a revision that it doesn't know.
            raise ConnectError(
                str(error),
                protocol=_last_word(str(error)),
                hint="a newer Hotplug may know it",
                cause="revision",
            ) from error
        return "legacy"
    raise ConnectError("the server names a protocol revision and then refuses it", protocol=version)


async def _probe(session: ClientSession, version: str, limit: float) -> dict[str, Any] | None:
    """The raw answer to `server/discover`, none for silence."""
    import anyio

    with anyio.move_on_after(limit):
        return await session.send_discover(version)
    return None


def _adopt(session: ClientSession, raw: dict[str, Any] | None) -> list[str] | None:
    """Takes the session into the new era if the answer is one: `[]` then, else the versions that it names, if any."""
    from mcp_types import DiscoverResult
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS
    from pydantic import ValidationError

    if raw is None:
        return None
    try:
        result = DiscoverResult.model_validate(raw)
    except ValidationError:
        return None
    if not set(result.supported_versions) & set(MODERN_PROTOCOL_VERSIONS):
        return list(result.supported_versions) or None
    session.adopt(result)
    return []


def _supported(error: MCPError) -> list[str] | None:
    data: Any = error.data
    listed: Any = cast("dict[str, Any]", data).get("supported") if isinstance(data, dict) else None
    if not isinstance(listed, list):
        return None
    return [item for item in cast("list[Any]", listed) if isinstance(item, str)]


def _foreign(versions: list[str]) -> ConnectError:
    listed = ", ".join(versions) or "none that it names"
    return ConnectError(
        f"the server speaks only protocol revisions that aren't known here: {listed}",
        protocol=versions[-1] if versions else None,
        hint="a newer Hotplug may know them",
        cause="revision",
    )


def _last_word(text: str) -> str | None:
    return text.rsplit(" ", 1)[-1] or None
