"""Connections that can only look: what a backend really stored, read past the server that is being tried."""

from hotplug.witness.access_log import HttpLog
from hotplug.witness.caldav import CalDav
from hotplug.witness.calendar import CalendarFolder, CalendarTables, times_of
from hotplug.witness.connection import OtherConnection
from hotplug.witness.events import OtherEvents
from hotplug.witness.folder import Folder
from hotplug.witness.process import ProcessWitness
from hotplug.witness.proxy import HttpProxy
from hotplug.witness.sql import SqlQuery

__all__ = [
    "CalDav",
    "CalendarFolder",
    "CalendarTables",
    "Folder",
    "HttpLog",
    "HttpProxy",
    "OtherConnection",
    "OtherEvents",
    "ProcessWitness",
    "SqlQuery",
    "times_of",
]
