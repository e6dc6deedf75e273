"""The guide's commands, played as they stand against a server that asks for OAuth."""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.docs.conftest import play

from hotplug.connect.secrets import SecretName
from hotplug.gateway.config_file import read_config

from .guarded import guarded
from .test_commands import HERE, app

pytestmark = pytest.mark.anyio
PAGE = Path(__file__).parents[3] / "docs" / "guides" / "gateway-oauth.md"
ADDRESS = "https://mcp.example.org/mcp"


async def test_logging_in_goes_as_the_guide_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER", f"{shlex.join([sys.executable, str(HERE / 'browse.py')])} %s")
    text = PAGE.read_text(encoding="utf-8")
    assert ADDRESS in text
    async with guarded(app=app()) as server:
        page = tmp_path / "page.md"
        page.write_text(text.replace(ADDRESS, server.url), encoding="utf-8")
        folder = tmp_path / "folder"
        folder.mkdir()
        await asyncio.to_thread(play, page, folder)
        assert server.accounts.revoked


def test_the_entries_of_the_guide_are_understood(tmp_path: Path) -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    secret = '[secrets.tracker]\nenv = "TRACKER"\nservers = ["tracker"]\n'
    path = tmp_path / "hotplug.toml"
    path.write_text("\n".join([*blocks, secret]), encoding="utf-8")
    found: Any = read_config(path)
    assert (dict(found.broken), found.warnings) == ({}, ())
    tracker = found.servers["tracker"]
    assert tracker.oauth
    assert tracker.oauth_settings.client_secret == SecretName("tracker")
    assert (tracker.oauth_settings.port, tracker.oauth_settings.scopes) == (8712, ("read",))
    assert set(tomllib.loads(path.read_text())["servers"]) == {"tracker", "wiki"}
