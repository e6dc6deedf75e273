"""Which servers and tools a thread gets, and nothing more. Pure; imports nothing of ours.

Settings are read leniently and saved strictly; a pure resolver decides for every thread, server and tool, with a
reason. Every doubt closes.
"""

from hotplug.access.document import Document, Node, parse, write
from hotplug.access.errors import AccessError, NotJson
from hotplug.access.findings import Finding
from hotplug.access.host import Host, Toolkit, read_host
from hotplug.access.names import PERSON_KEYS, is_profile_name, is_thread_id, near
from hotplug.access.patch import PICKS_CAP, PatchRefused, Role, apply_patch, profile_uses, prune_picks
from hotplug.access.profiles import Profile, ToolRule
from hotplug.access.settings import Marker, Project, Settings, read_settings, settings_of

__all__ = [
    "PERSON_KEYS",
    "PICKS_CAP",
    "AccessError",
    "Document",
    "Finding",
    "Host",
    "Marker",
    "Node",
    "NotJson",
    "PatchRefused",
    "Profile",
    "Project",
    "Role",
    "Settings",
    "ToolRule",
    "Toolkit",
    "apply_patch",
    "is_profile_name",
    "is_thread_id",
    "near",
    "parse",
    "profile_uses",
    "prune_picks",
    "read_host",
    "read_settings",
    "settings_of",
    "write",
]
