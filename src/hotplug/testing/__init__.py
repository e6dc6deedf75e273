"""Servers and drivers that tests, demonstrations and the conformance suite start: real ones, not mocks."""

from hotplug.testing.postgres import PostgresServer, postgres
from hotplug.testing.radicale import RadicaleServer, StoredEvent, radicale

__all__ = ["PostgresServer", "RadicaleServer", "StoredEvent", "postgres", "radicale"]
