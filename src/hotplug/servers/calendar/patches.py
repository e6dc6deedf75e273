"""What single occurrences have of their own: between the profile's patches, whose values no schema checks, and ours."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, cast

from pydantic import StrictBool, TypeAdapter, ValidationError

from hotplug.catalog.calendar.profile import Alert, Participant
from hotplug.errors import InvalidArgument
from hotplug.servers.calendar.reminders import alert_map, shown

__all__ = ["read_patches", "shown_patches"]


@cache
def _fields() -> Mapping[str, TypeAdapter[Any]]:
    """What each field of a patch may be; null where an occurrence can be without it."""
    text, some, flag = TypeAdapter[Any](str), TypeAdapter[Any](str | None), TypeAdapter[Any](StrictBool)
    return {
        **dict.fromkeys(("title", "start", "end", "duration"), text),
        **dict.fromkeys(("description", "location", "status", "freeBusyStatus", "timeZone"), some),
        **dict.fromkeys(("excluded", "showWithoutTime"), flag),
        "participants": TypeAdapter[Any](list[Participant] | None),
        "alerts": TypeAdapter[Any](list[Alert] | None),
    }


def read_patches(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The engine's form of `recurrenceOverrides`; names that a patch can't have are left to it.

    Raises:
        InvalidArgument: A value isn't one; the message names the occurrence and the field.
    """
    return {at: None if patch is None else _read(at, patch) for at, patch in overrides.items()}


def _read(at: str, patch: object) -> dict[str, Any]:
    if not isinstance(patch, Mapping):
        raise InvalidArgument(f"recurrenceOverrides: {at!r} has no object of changed fields")
    found: dict[str, Any] = {}
    for name, value in cast("Mapping[str, Any]", patch).items():
        adapter = _fields().get(name)
        found[name] = value if adapter is None else _valid(at, name, adapter, value)
        if name == "alerts" and found[name] is not None:
            found[name] = alert_map(found[name])
    return found


def _valid(at: str, name: str, adapter: TypeAdapter[Any], value: Any) -> Any:
    try:
        read = adapter.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join([name, *map(str, first["loc"])])
        raise InvalidArgument(
            f"recurrenceOverrides: {path} of {at!r} isn't right: {first['msg'].lower()}", details={"field": name}
        ) from None
    return adapter.dump_python(read, mode="json", by_alias=True, exclude_none=True)


def shown_patches(event: Mapping[str, Any]) -> dict[str, Any]:
    """The engine's event with reminders in the profile's form: its own, and those of its changed occurrences."""
    patches = event.get("recurrenceOverrides")
    out = shown(event)
    if not isinstance(patches, Mapping):
        return out
    told = {at: shown(patch) for at, patch in cast("Mapping[str, Mapping[str, Any]]", patches).items()}
    unknown = {*out.get("unknown", ()), *(name for patch in told.values() for name in patch.pop("unknown", ()))}
    return {**out, "recurrenceOverrides": told, **({"unknown": sorted(unknown)} if unknown else {})}
