"""What the guide has clients write: each in the form that its client reads, as our import of such files reads it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hotplug.gateway.importing import Imported, client_of, import_file

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "gateway-setup.md"
_SNIPPET = re.compile(
    r"^<!-- client: (?P<client>[\w-]+) (?P<file>\S+) -->\n+```json\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SNIPPETS = [(one["client"], one["file"], one["body"]) for one in _SNIPPET.finditer(PAGE.read_text(encoding="utf-8"))]


def read(client: str, file: str, body: str) -> Imported:
    path = Path("/home/me") / file
    assert client_of(path) == client
    # Under its own name the gateway isn't imported into itself.
    body = body.replace('"hotplug"', '"gateway"')
    (found,) = import_file(body, path=path, home=Path("/home/me"), environ={})
    assert isinstance(found, Imported)
    assert found.notes == ()
    return found


def test_four_clients_have_a_snippet_for_standard_streams_and_three_for_http() -> None:
    kinds = [(client, "url" if '"url"' in body else "command") for client, _, body in SNIPPETS]
    assert sorted(kinds) == [
        ("claude-code", "command"),
        ("claude-code", "url"),
        ("claude-desktop", "command"),
        ("cursor", "command"),
        ("cursor", "url"),
        ("vscode", "command"),
        ("vscode", "url"),
    ]


@pytest.mark.parametrize(("client", "file", "body"), SNIPPETS, ids=lambda value: value if len(value) < 40 else "body")
def test_a_client_s_snippet_is_read_as_it_is_meant(client: str, file: str, body: str) -> None:
    entry: dict[str, Any] = dict(read(client, file, body).entry)
    entry.pop("cwd", None)
    if "command" in entry:
        assert entry == {"command": "gateway", "args": ["serve"]}
    else:
        assert entry["url"].startswith("http://127.0.0.1:8321/threads/")
        assert re.fullmatch(r"Bearer secret:hotplug.(thread_)?token", entry["headers"]["Authorization"])


def test_the_fifth_client_s_program_is_one() -> None:
    programs = [one for one in _PYTHON.findall(PAGE.read_text(encoding="utf-8")) if "pydantic_ai" in one]
    assert len(programs) == 2
    for program in programs:
        compile(program, str(PAGE), "exec")
