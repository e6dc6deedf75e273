"""Our calendar over stdio, with its store in the calendar's own file: `python -m benchmarks.our_calendar FILE`."""

from __future__ import annotations

import sys

from hotplug.serve import run
from hotplug.servers.calendar.server import SqliteCalendar
from hotplug.store import open_store

if __name__ == "__main__":
    run(SqliteCalendar(sys.argv[1]), store=open_store(f"sqlite:///{sys.argv[1]}"))
