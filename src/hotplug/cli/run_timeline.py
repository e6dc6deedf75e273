"""A window drawn: a lane for each sense, what was seen on it and when, and where nobody could look."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from hotplug.cli.html import Markup, element
from hotplug.cli.run_view import Judged

if TYPE_CHECKING:
    from hotplug.evidence.action import Action

__all__ = ["timeline"]

_LEFT: Final = 150
_WIDTH: Final = 640
_LANE: Final = 26
_MOST_LANES: Final = 12
_MOST_DOTS: Final = 400


def timeline(one: Judged, actions: Iterable[Action]) -> Markup | None:
    """The drawing, with what it shows as its description; None where there is no window."""
    from hotplug.evidence.intent import channels_read

    if one.window is None or one.record is None:
        return None
    window = one.window
    last = window.closed_at if window.closed_at is not None else window.opened_at + window.budget_ms
    length = max(last - window.opened_at, 1)

    def x(at: int) -> float:
        return round(_LEFT + (_WIDTH - _LEFT - 12) * min(max((at - window.opened_at) / length, 0), 1), 1)

    declared = {channel.id for channel in one.channels}
    blind = {spot.channel for spot in (one.coverage.blind_spots if one.coverage else None) or () if spot.channel}
    seen = [item.observation.channel for item in one.evidence]
    lanes = list(dict.fromkeys((*channels_read(one.claim.assertions), *seen)))[:_MOST_LANES]
    if not lanes:
        return None
    height = _LANE * len(lanes) + 26
    drawn: list[Markup] = []
    told: list[str] = []
    for position, lane in enumerate(lanes):
        y = _LANE * position + 16
        kind = "unwatched" if lane not in declared else "blind" if lane in blind else "watched"
        drawn.append(element("text", _short(lane), x=_LEFT - 12, y=y + 4, class_="lane", text_anchor="end"))
        drawn.append(element("line", x1=_LEFT, x2=_WIDTH - 12, y1=y, y2=y, class_=kind))
        dots = [item for item in one.evidence if item.observation.channel == lane]
        for item in dots[:_MOST_DOTS]:
            worth = "independent" if item.independence == "independent" else "derived"
            title = element("title", item.observation.summary)
            drawn.append(element("circle", title, cx=x(item.observation.at), cy=y, r=6, class_=worth))
        told.append(f"{lane}: {kind}, {len(dots)} seen")
    foot = height - 22
    for action in actions:
        if window.opened_at <= action.at <= last:
            title = element("title", f"action {action.capability}")
            tick = element("line", title, x1=x(action.at), x2=x(action.at), y1=4, y2=foot, class_="acted")
            drawn.append(tick)
    clean = "closed" if window.closed_at is not None else "open"
    drawn.append(element("text", "opened", x=_LEFT, y=height - 4, class_="time"))
    ended = f"{window.closed_by or 'still open'} after {length} ms"
    drawn.append(element("text", ended, x=_WIDTH - 12, y=height - 4, class_="time", text_anchor="end"))
    svg = element(
        "svg",
        drawn,
        viewBox=f"0 0 {_WIDTH} {height}",
        role="img",
        aria_label=f"The window, {clean}: {'; '.join(told)}",
        class_="timeline",
    )
    return element("div", svg, class_="scroll", tabindex="0", role="group", aria_label="Timeline of the window")


def _short(name: str) -> str:
    return name if len(name) <= 18 else f"{name[:17]}…"
