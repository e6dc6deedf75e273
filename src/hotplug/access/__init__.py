"""Which servers and tools a thread gets, and nothing more. Pure; imports nothing of ours.

Settings are read leniently and saved strictly; a pure resolver decides for every thread, server and tool, with a
reason. Every doubt closes.
"""

from hotplug.access.check import check
from hotplug.access.document import Document, Node, parse, write
from hotplug.access.errors import AccessError, NotJson
from hotplug.access.explain import Explanation, explain
from hotplug.access.findings import Finding
from hotplug.access.granted import OUTSIDE, Access, Decision, Layer, Refused, Step, Withheld
from hotplug.access.guard import names_person_key
from hotplug.access.host import Host, Toolkit, read_host
from hotplug.access.lineage import DEEPEST, Lineage, Thread, read_lineage
from hotplug.access.names import PERSON_KEYS, is_profile_name, is_thread_id, near
from hotplug.access.patch import PICKS_CAP, PatchRefused, Role, apply_patch, profile_uses, prune_picks
from hotplug.access.profiles import EVERYTHING, Profile, ToolRule
from hotplug.access.resolver import resolve
from hotplug.access.settings import Marker, Project, Settings, read_settings, settings_of

__all__ = [
    "DEEPEST",
    "EVERYTHING",
    "OUTSIDE",
    "PERSON_KEYS",
    "PICKS_CAP",
    "Access",
    "AccessError",
    "Decision",
    "Document",
    "Explanation",
    "Finding",
    "Host",
    "Layer",
    "Lineage",
    "Marker",
    "Node",
    "NotJson",
    "PatchRefused",
    "Profile",
    "Project",
    "Refused",
    "Role",
    "Settings",
    "Step",
    "Thread",
    "ToolRule",
    "Toolkit",
    "Withheld",
    "apply_patch",
    "check",
    "explain",
    "is_profile_name",
    "is_thread_id",
    "names_person_key",
    "near",
    "parse",
    "profile_uses",
    "prune_picks",
    "read_host",
    "read_lineage",
    "read_settings",
    "resolve",
    "settings_of",
    "write",
]
