"""The form of a profile's document, checked before anything of it is used."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from hotplug.errors import ProfileError

__all__ = ["check_form"]

_TEXT: Final = {"type": "string", "minLength": 1}
_FLAG: Final = {"type": "boolean"}
_SCHEMA: Final = {"type": "object"}


def _closed(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def _by_name(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": dict(entry)}


_PART: Final = {"description": _TEXT, "required": _FLAG, "facet": _TEXT, "without": _TEXT}
_CALLED: Final = {**_PART, "input": _SCHEMA, "output": _SCHEMA, "eager": _FLAG}
_CALLED_TIMED: Final = {**_CALLED, "timeoutMs": {"type": "integer", "minimum": 1}}
_FORM: Final = _closed(
    {
        "schema": _TEXT,
        "name": {"type": "string", "pattern": "^[a-z][a-z0-9]*$"},
        "version": _TEXT,
        "description": _TEXT,
        "extends": _by_name(_TEXT),
        "refs": _by_name(_closed({"volatile": _FLAG, "public": _FLAG})),
        "facets": _by_name(
            _closed({"version": _TEXT, "description": _TEXT, "without": _TEXT}, "version", "description", "without")
        ),
        "operations": _by_name(
            _closed({**_CALLED_TIMED, "effects": _FLAG, "once": _FLAG, "guarded": _FLAG}, "input", "output")
        ),
        "reads": _by_name(
            _closed({**_CALLED_TIMED, "sense": _TEXT, "look": {"enum": ["turn", "effect", "ask"]}}, "input", "output")
        ),
        "events": _by_name(
            _closed(
                {
                    **_PART,
                    "arguments": _SCHEMA,
                    "payload": _SCHEMA,
                    "sense": _TEXT,
                    "replay": {"enum": ["live", "durable"]},
                    "thread": _TEXT,
                },
                "arguments",
                "payload",
            )
        ),
        "senses": _by_name(
            _closed(
                {
                    "independence": {"enum": ["independent", "actuation-derived"]},
                    "grade": {"enum": ["presence", "context", "consequence"]},
                },
                "independence",
                "grade",
            )
        ),
        "determinism": _closed(
            {
                "reset": {"enum": ["none", "cheap", "costly"]},
                "replayPrefix": {"enum": ["free", "costly", "unsafe"]},
                "time": {"enum": ["wall", "virtual", "controlled"]},
                "observation": {"enum": ["exact", "sampled", "noisy"]},
                "actions": {"enum": ["reversible", "compensable", "irreversible"]},
            }
        ),
        "setup": _SCHEMA,
    },
    "schema",
    "name",
    "version",
    "description",
)


def check_form(document: Mapping[str, Any]) -> None:
    """Refuse a document of another form.

    Raises:
        ProfileError: It names the first places that are wrong, and what was expected there.
    """
    errors = sorted(_validator().iter_errors(document), key=lambda error: len(error.absolute_path))
    if errors:
        found = (
            f"{'.'.join(str(step) for step in error.absolute_path) or 'the document'}: {str(error.message)[:200]}"
            for error in errors[:3]
        )
        raise ProfileError("; ".join(found))
    for section in ("operations", "reads"):
        for name, part in document.get(section, {}).items():
            for side in ("input", "output"):
                _check_schema(f"{section}.{name}.{side}", part[side])
    for name, part in document.get("events", {}).items():
        for side in ("arguments", "payload"):
            _check_schema(f"events.{name}.{side}", part[side])


def _check_schema(place: str, schema: Any) -> None:
    import jsonschema

    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        at = "".join(f".{step}" for step in error.absolute_path)
        raise ProfileError(f"{place}{at} is no JSON Schema: {str(error.message)[:200]}") from None


@cache
def _validator() -> Any:
    import jsonschema

    return jsonschema.Draft202012Validator(_FORM)
