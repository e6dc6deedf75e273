"""A window drawn: a lane for each sense, what was seen on it and when, and where nobody could look."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from hotplug.cli.html import Markup, element
from hotplug.cli.run_view import Judged

if TYPE_CHECKING:
    from hotplug.evidence.action import Action
    from hotplug.evidence.observation import Evidence

__all__ = ["timeline"]

_LANE: Final = 38
"""Height of a lane, in pixels: its name, and its line below. Across, all is in percent, so that text never shrinks."""
_MOST_LANES: Final = 12
_MOST_DOTS: Final = 400
_MOST_TOLD: Final = 20


def timeline(one: Judged, actions: Iterable[Action]) -> Markup | None:
    """The drawing, with what it shows as its description; None where there is no window."""
    from hotplug.evidence.intent import channels_read

    if one.window is None or one.record is None:
        return None
    window = one.window
    last = window.closed_at if window.closed_at is not None else window.opened_at + window.budget_ms
    length = max(last - window.opened_at, 1)

    def x(at: int) -> str:
        return f"{100 * min(max((at - window.opened_at) / length, 0), 1):.2f}%"

    declared = {channel.id for channel in one.channels}
    blind = {spot.channel for spot in (one.coverage.blind_spots if one.coverage else None) or () if spot.channel}
    seen = [item.observation.channel for item in one.evidence]
    lanes = list(dict.fromkeys((*channels_read(one.claim.assertions), *seen)))[:_MOST_LANES]
    if not lanes:
        return None
    height = _LANE * len(lanes) + 20
    drawn: list[Markup] = []
    told: list[str] = []
    for action in actions:
        if window.opened_at <= action.at <= last:
            title = element("title", f"action {action.capability}")
            drawn.append(element("line", title, x1=x(action.at), x2=x(action.at), y1=0, y2=height - 18, class_="acted"))
    for position, lane in enumerate(lanes):
        y = _LANE * position + 26
        kind = "not watched" if lane not in declared else "partly out of sight" if lane in blind else "watched"
        note = "" if kind == "watched" else f" · {kind}"
        drawn.append(element("text", f"{_short(lane)}{note}", x=6, y=y - 12, class_="lane"))
        drawn.append(element("line", x1="0%", x2="100%", y1=y, y2=y, class_=kind.replace(" ", "-")))
        dots = [item for item in one.evidence if item.observation.channel == lane]
        drawn += _dots(dots, y, x)
        told.append(f"{lane}: {kind}, {len(dots)} seen")
    ended = f"{window.closed_by or 'still open'} after {length} ms"
    drawn.append(element("text", "opened", x="0%", y=height - 3, class_="time"))
    drawn.append(element("text", ended, x="100%", y=height - 3, class_="time", text_anchor="end"))
    label = f"The window, {ended}. {'; '.join(told)}"
    return element("svg", drawn, width="100%", height=height, role="img", aria_label=label, class_="timeline")


def _dots(items: list[Evidence], y: int, x: Callable[[int], str]) -> Iterator[Markup]:
    """What was seen on a lane; what stands at one place is one dot, with how many there are."""
    places: dict[tuple[str, str], list[Evidence]] = {}
    for item in items:
        worth = "independent" if item.independence == "independent" else "derived"
        places.setdefault((x(item.observation.at), worth), []).append(item)
    for (place, worth), there in list(places.items())[:_MOST_DOTS]:
        title = element("title", "; ".join(item.observation.summary for item in there[:_MOST_TOLD]))
        yield element("circle", title, cx=place, cy=y, r=6, class_=worth)
        if len(there) > 1:
            yield element("text", f"×{len(there)}", x=place, y=y - 12, class_="time", text_anchor="middle")


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:23]}…"
