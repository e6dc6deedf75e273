"""Connections that can only look: what a backend really stored, read past the server that is being tried."""

from hotplug.witness.calendar import CalDavWitness, FolderWitness, SqliteWitness, times_of

__all__ = ["CalDavWitness", "FolderWitness", "SqliteWitness", "times_of"]
