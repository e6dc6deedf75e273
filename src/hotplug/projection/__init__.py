"""Projections: an unmodified server presented as a profile, by a reviewed and frozen document."""

from hotplug.projection.document import Document, Source, digest, parse
from hotplug.projection.files import read, tool_list
from hotplug.projection.fingerprint import Drift, drift, tools_digest
from hotplug.projection.mapping import Bounds, Mapping
from hotplug.projection.runtime import ProjectedProvider, ProjectionCode, Upstream
from hotplug.projection.shipped import Loaded, choose, load, named, shipped

__all__ = [
    "Bounds",
    "Document",
    "Drift",
    "Loaded",
    "Mapping",
    "ProjectedProvider",
    "ProjectionCode",
    "Source",
    "Upstream",
    "choose",
    "digest",
    "drift",
    "load",
    "named",
    "parse",
    "read",
    "shipped",
    "tool_list",
    "tools_digest",
]
