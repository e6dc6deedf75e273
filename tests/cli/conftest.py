"""The command line as a user meets it: arguments in, an exit code and two streams out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hotplug.cli import main

SCHEMAS = Path(__file__).parent.parent.parent / "schemas"


def validated(text: str) -> dict[str, Any]:
    """The document of a JSON text, valid by the published schema that it names."""
    document = json.loads(text)
    schema = json.loads((SCHEMAS / f"{document['schema'].replace('/', '-')}.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(document)
    return document


@dataclass(frozen=True)
class Ran:
    """What one command did."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The answer, valid by its published schema."""
        return validated(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """The error on stderr, valid by its published schema; stdout stayed empty."""
        assert self.out == ""
        assert self.err.count("\n") == 1
        return validated(self.err)


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs a command in an empty folder, in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOTPLUG_CONFIG", str(tmp_path / "config" / "hotplug.toml"))
    monkeypatch.setenv("HOTPLUG_SETTINGS", str(tmp_path / "config" / "settings.json"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def command(*arguments: str) -> Ran:
        code = main(arguments)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return command
