"""Declarations: what a server says that it implements, in two dialects, and whether its tools bear it out. Pure."""

from hotplug.declare.check import check
from hotplug.declare.declaration import Alias, Card, Declaration, Instance, Via
from hotplug.declare.dialects import CARDS, NOETIC
from hotplug.declare.findings import HARMLESS, Code, Finding, available
from hotplug.declare.routes import MEMBER_META, Route, members_of, routes

__all__ = [
    "CARDS",
    "HARMLESS",
    "MEMBER_META",
    "NOETIC",
    "Alias",
    "Card",
    "Code",
    "Declaration",
    "Finding",
    "Instance",
    "Route",
    "Via",
    "available",
    "check",
    "members_of",
    "routes",
]
