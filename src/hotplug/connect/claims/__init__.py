"""Claims on a connection: written down before acting, judged afterwards by what was seen.

`net("POST /orders 201").exactly(1)` and its like make conditions; `app.claim(...)` opens the window; the verdict is
the Open Verification Protocol's, from `hotplug.evidence`.
"""

from hotplug.connect.claims.conditions import (
    Condition,
    Constraint,
    Selector,
    constraint,
    log,
    net,
    predicate_reader,
    route,
    sense,
    signal,
    state,
    storage,
    time,
    ui,
    visual,
)
from hotplug.connect.claims.looking import Looking
from hotplug.connect.claims.recording import Recording
from hotplug.connect.claims.settling import Within
from hotplug.connect.claims.verdict import Claimed, Verdict
from hotplug.connect.claims.window import ClaimWindow

__all__ = [
    "ClaimWindow",
    "Claimed",
    "Condition",
    "Constraint",
    "Looking",
    "Recording",
    "Selector",
    "Verdict",
    "Within",
    "constraint",
    "log",
    "net",
    "predicate_reader",
    "route",
    "sense",
    "signal",
    "state",
    "storage",
    "time",
    "ui",
    "visual",
]
