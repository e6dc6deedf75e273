"""Connections that can only look: what a backend really stored, read past the server that is being tried."""

from hotplug.witness.access_log import HttpLog
from hotplug.witness.calendar import CalDavWitness, FolderWitness, SqliteWitness, times_of
from hotplug.witness.folder import Folder
from hotplug.witness.sql import SqlQuery

__all__ = ["CalDavWitness", "Folder", "FolderWitness", "HttpLog", "SqlQuery", "SqliteWitness", "times_of"]
