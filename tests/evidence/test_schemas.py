"""Every noun's schema lies in `schemas/evidence/` as it is made here."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from hotplug.evidence import schema_of, schemas

FOLDER = Path(__file__).parents[2] / "schemas" / "evidence"
THIRTY = re.findall(
    r"\S+",
    """
    subject-ref fixture-ref reversal invalidation channel-descriptor intent claim assertion predicate match constraint
    constraint-violation capability handle action action-receipt window observation provenance evidence blind-spot
    coverage anomaly verdict-record flow invoke repair belief implementation verification-run
    """,
)


def test_the_thirty_nouns_and_the_adjudicators_two_are_published() -> None:
    assert len(THIRTY) == 30
    assert sorted(schemas()) == sorted([*THIRTY, "adjudication", "adjudication-input"])
    assert {path.stem for path in FOLDER.iterdir()} == set(schemas())


@pytest.mark.parametrize("name", sorted(schemas()))
def test_a_published_schema_is_the_one_made_here(name: str) -> None:
    """`HOTPLUG_WRITE_SCHEMAS=1` writes them anew."""
    text = json.dumps(schema_of(name), indent=2, ensure_ascii=False) + "\n"
    file = FOLDER / f"{name}.json"
    if os.environ.get("HOTPLUG_WRITE_SCHEMAS"):
        file.write_text(text, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("name", sorted(schemas()))
def test_a_published_schema_is_one_and_every_object_in_it_is_closed(name: str) -> None:
    schema = schema_of(name)
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"urn:hotplug:schema:evidence:{name}:1"
    for one in objects(schema):
        assert one["additionalProperties"] is False
        assert one["description"]
    assert '"null"' not in json.dumps(schema)


def objects(schema: Any) -> list[dict[str, Any]]:
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    found = [one for part in inner for one in objects(part)]
    return [schema, *found] if isinstance(schema, dict) and schema.get("type") == "object" else found


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("intent", {"id": "i", "statement": "s", "origin": "user", "status": "abandoned"}),
        ("intent", {"id": "i", "statement": "s", "origin": "user", "status": "abandoned", "abandonedBecause": " "}),
        ("intent", {"id": "i", "statement": "s", "origin": "user", "status": "declared", "abandonedBecause": "x"}),
        ("intent", {"id": "i", "statement": "s", "origin": "user", "status": "bound", "claims": []}),
        ("match", {"channel": "net", "valueContains": "x"}),
        ("match", {"channel": "x_mail"}),
        ("match", {"channel": "x-mail\n"}),
        ("invoke", {"id": "s", "invoke": "a/../b", "at": 1}),
        ("invoke", {"id": "s", "invoke": "/a", "at": 1}),
        ("invoke", {"id": "s", "invoke": "a/.", "at": 1}),
        ("invoke", {"id": "s", "invoke": "", "at": 1}),
        ("adjudication", {"verdict": "no", "grade": "consequence", "ground": "proved", "reasons": ["r"]}),
    ],
)
def test_the_rules_between_members_stand_in_the_schemas(name: str, document: dict[str, Any]) -> None:
    assert not Draft202012Validator(schema_of(name)).is_valid(document)
