"""Serving profiles: base classes become MCP servers, in both protocol eras, over stdio, HTTP and in process."""

from hotplug.serve.attach import Attached, attach, principal_of, result_of
from hotplug.serve.bound import MEMBER_META, Bound, Tool, bind
from hotplug.serve.call import Call, current_call
from hotplug.serve.provider import Memory, NativeProvider, ProjectionRef, Provider
from hotplug.serve.refs import Seal, Seals
from hotplug.serve.run import build, run
from hotplug.serve.runtime import (
    AUTHORIZED_META,
    INSTANCE_META,
    KEY_META,
    NOTES_META,
    Answer,
    Runtime,
)

__all__ = [
    "AUTHORIZED_META",
    "INSTANCE_META",
    "KEY_META",
    "MEMBER_META",
    "NOTES_META",
    "Answer",
    "Attached",
    "Bound",
    "Call",
    "Memory",
    "NativeProvider",
    "ProjectionRef",
    "Provider",
    "Runtime",
    "Seal",
    "Seals",
    "Tool",
    "attach",
    "bind",
    "build",
    "current_call",
    "principal_of",
    "result_of",
    "run",
]
