"""The shipped projections, as far as they can be judged without their servers."""

from __future__ import annotations

import hashlib

import pytest

from hotplug.catalog.calendar import Calendar
from hotplug.projection import Loaded, shipped
from hotplug.projection.coverage import check
from hotplug.projection.functions import functions_of

CALENDARS = [one for one in shipped() if "calendar" in one.source.document.profiles]


@pytest.mark.parametrize("loaded", CALENDARS, ids=lambda one: one.name)
def test_a_shipped_projection_has_nothing_left_to_decide(loaded: Loaded) -> None:
    profile = Calendar.definition.document()
    found = check(loaded.source, loaded.tools, profile, functions=functions_of(["calendar"]))
    assert [str(finding) for finding in found if finding.level != "note"] == []


@pytest.mark.parametrize("loaded", CALENDARS, ids=lambda one: one.name)
def test_the_code_beside_a_shipped_projection_is_the_one_that_was_frozen(loaded: Loaded) -> None:
    document = loaded.source.document
    assert document.code is not None
    code = loaded.path.with_name(f"{document.code.partition(':')[0]}.py")
    assert document.code_digest == f"sha256:{hashlib.sha256(code.read_bytes()).hexdigest()}"
