"""Our calendar over stdio, with its store in the calendar's own file: `python -m benchmarks.our_calendar FILE`."""

from __future__ import annotations

import sys

from hotplug.serve import run
from hotplug.servers import native

if __name__ == "__main__":
    calendar, store, identity = native("sqlite", sys.argv[1])
    run(calendar, store=store, identity=identity)
