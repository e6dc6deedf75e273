"""What is secret in an entry, wherever it stands, is in nothing that a command writes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Run

MARK = "s3cret-hunter"

TELLS = """import json, os, sys
print("args", sys.argv, file=sys.stderr)
print("env", dict(os.environ), file=sys.stderr)
print(json.dumps(sys.argv[1:]), file=sys.stderr)
sys.exit(3)
"""

ENTRIES = {
    "an option": 'args = ["tells.py", "--token", "MARK"]',
    "an option's value": 'args = ["tells.py", "--api-key=MARK"]',
    "a variable among arguments": 'args = ["tells.py", "-e", "API_KEY=MARK"]',
    "a header among arguments": 'args = ["tells.py", "--header", "Authorization: Bearer MARK"]',
    "a URL among arguments": 'args = ["tells.py", "postgresql://me:MARK@h/db"]',
    "a variable": 'args = ["tells.py"]\nenv = { API_TOKEN = "MARK" }',
    "a variable's URL": 'args = ["tells.py"]\nenv = { DATABASE_URL = "postgresql://me:MARK@h/db" }',
    "a named secret": 'args = ["tells.py"]\nenv = { ANY = "secret:k" }',
    "a URL's query": 'url = "http://127.0.0.1:9/mcp?api_key=MARK"',
    "a URL's user": 'url = "http://me:MARK@127.0.0.1:9/mcp"',
    "a URL that is none": 'url = "http://me:MARK@127.0.0.1:99999/mcp"',
    "a header": 'url = "http://127.0.0.1:9/mcp"\nheaders = { X-Api-Key = "MARK", Cookie = "s=MARK" }',
    "a line for a program": 'command = "no-such-program --token MARK"',
    "a target": 'target = "API_TOKEN=MARK no-such-program --password MARK"',
    "a target of no known scheme": 'target = "htp://me:MARK@h/x"',
    "a list for a variable": 'command = "x"\nenv = { TOKEN = ["MARK"] }',
    "a client's secret": 'url = "http://127.0.0.1:9/mcp"\noauth = { client_id = "x", client_secret = "MARK" }',
}


@pytest.mark.parametrize("place", ENTRIES)
def test_a_secret_stands_in_nothing_that_is_written_of_its_server(run: Run, tmp_path: Path, place: str) -> None:
    (tmp_path / "tells.py").write_text(TELLS)
    entry = ENTRIES[place].replace("MARK", MARK)
    if "tells.py" in entry:
        entry = f'command = "{sys.executable}"\ncwd = "{tmp_path}"\n{entry}'
    config = tmp_path / "config" / "hotplug.toml"
    config.parent.mkdir()
    config.write_text(f'[servers.a]\n{entry}\n[secrets.k]\ncommand = ["echo", "{MARK}"]\nservers = ["a"]\n')
    config.chmod(0o600)
    project = tmp_path / "hotplug.toml"
    project.write_text(config.read_text())
    for words in (
        ("server", "list"),
        ("server", "list", "--json"),
        ("doctor", "hotplug.toml", "--json", "-vv"),
        ("server", "test", "a", "-vv"),
        ("inspect", "hotplug.toml#a", "-vv"),
        ("trust", "hotplug.toml"),
    ):
        ran = run(*words)
        assert MARK not in ran.out + ran.err, words
