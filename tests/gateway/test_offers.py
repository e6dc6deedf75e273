"""How the operations of several servers of a profile are listed as one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hotplug.catalog import Calendar
from hotplug.gateway.message import loads
from hotplug.gateway.offers import Instance, Offer, instance_argument, merge
from hotplug.profile import Model, Profile, read
from hotplug.profile.schema import ERROR_SCHEMA, error_or
from hotplug.serve import Runtime
from hotplug.servers import native
from hotplug.store import Store, memory


class Told(Model):
    told: str


class Odd(Profile, name="odd", version="1.0.0"):
    """Odd. For tests."""

    @read("odd.tell", sense="state")
    async def tell(self, instance: str) -> Told:
        """Tell of an instance."""
        ...


class MyOdd(Odd):
    async def tell(self, instance: str) -> Told:
        return Told(told=instance)


WORK, HOME = Instance("work", "Work"), Instance("home", "At home")


def offered(store: Store, server: str, path: Path, me: str | None = None) -> dict[str, Offer]:
    """The offers of a calendar: with an owner it has invitations and answers them, in a folder without one neither."""
    calendar, _, identity = native("folder", str(path / server), me=me, store=store)
    runtime = Runtime(calendar, store=store, identity=identity, name=server)
    return {name: Offer(bound, server, f"{server}-1") for name, bound in runtime.bound.items()}


@pytest.fixture
def offers(tmp_path: Path) -> tuple[dict[str, Offer], dict[str, Offer]]:
    store = memory()
    return offered(store, "work", tmp_path, "me@example.org"), offered(store, "home", tmp_path)


def listed(tool: Any) -> dict[str, Any]:
    return {key: loads(value) for key, value in tool.items()}


Both = tuple[dict[str, Offer], dict[str, Offer]]


def test_one_instance_is_listed_exactly_as_the_profile_has_it(offers: Both) -> None:
    work, _ = offers
    merged = merge([work["calendar.create"]], [WORK])
    assert listed(merged.tool) == work["calendar.create"].bound.tool.listed()
    part = Calendar.definition.all_parts["calendar.create"]
    tool = listed(merged.tool)
    assert tool["description"] == part.description
    assert tool["outputSchema"] == error_or(part.output.schema)
    assert ERROR_SCHEMA in tool["outputSchema"]["anyOf"]
    assert tool["annotations"] == {"readOnlyHint": False, "idempotentHint": False, "openWorldHint": True}
    assert tool["_meta"] == {"org.classprofiles/member": "calendar@1/calendar.create"}
    assert merged.instances == (WORK,)


def test_several_instances_are_named_by_an_argument(offers: Both) -> None:
    work, home = offers
    merged = merge([work["calendar.get"], home["calendar.get"]], [WORK, HOME])
    tool = listed(merged.tool)
    one = listed(work["calendar.get"].tool)
    assert tool["inputSchema"]["properties"]["instance"]["enum"] == ["work", "home"]
    assert "At home" in tool["inputSchema"]["properties"]["instance"]["description"]
    assert tool["inputSchema"]["required"] == ["instance", *one["inputSchema"]["required"]]
    assert tool["inputSchema"]["additionalProperties"] is False
    rest = {name: field for name, field in tool["inputSchema"]["properties"].items() if name != "instance"}
    assert rest == one["inputSchema"]["properties"]
    assert tool["description"] == one["description"]


def test_who_names_the_instance_in_meta_gets_a_schema_that_takes_all_that_the_profile_allows(offers: Both) -> None:
    from hotplug.profile.compare import Yes, accepts_all

    work, home = offers
    both = [work["calendar.get"], home["calendar.get"]]
    aware = listed(merge(both, [WORK, HOME], aware=True).tool)["inputSchema"]
    strict = listed(merge(both, [WORK, HOME]).tool)["inputSchema"]
    wanted = Calendar.definition.all_parts["calendar.get"].input.schema
    assert isinstance(accepts_all(aware, wanted), Yes)
    assert not isinstance(accepts_all(strict, wanted), Yes)


def test_a_part_that_only_some_instances_have_says_so(offers: Both) -> None:
    work, home = offers
    assert "calendar.rsvp" not in home
    tool = listed(merge([work["calendar.rsvp"]], [WORK, HOME]).tool)
    assert tool["description"].endswith("Only at `work`.")
    assert tool["inputSchema"]["properties"]["instance"]["enum"] == ["work", "home"]


def test_a_field_of_a_facet_that_only_some_instances_have_says_so(offers: Both) -> None:
    work, home = offers
    fields = listed(merge([work["calendar.create"], home["calendar.create"]], [WORK, HOME]).tool)["inputSchema"][
        "properties"
    ]
    assert "Only at `work`." in fields["participants"]["description"]
    assert "Only at" not in fields["recurrenceRules"].get("description", "")
    without = listed(merge([home["calendar.create"]], [HOME]).tool)["inputSchema"]["properties"]
    assert "participants" not in without


def test_a_part_with_an_argument_called_instance_keeps_it() -> None:
    runtime = Runtime(MyOdd(), store=memory(), identity="odd")
    bound = runtime.bound["odd.tell"]
    assert instance_argument(bound.part) == "hotplugInstance"
    schema = listed(merge([Offer(bound, "work", "w"), Offer(bound, "home", "h")], [WORK, HOME]).tool)["inputSchema"]
    assert schema["properties"]["instance"] == {"type": "string"}
    assert schema["properties"]["hotplugInstance"]["enum"] == ["work", "home"]


def test_a_value_of_an_offer_shows_no_schema(offers: Both) -> None:
    assert "inputSchema" not in repr(offers[0]["calendar.create"])
