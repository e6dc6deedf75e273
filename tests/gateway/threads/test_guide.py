"""What the guide says of HTTP is what is answered. Its commands are played with those of the other guides."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.gateway.threads.test_threads_api import served

from hotplug.gateway.threads import MOST_OPEN, Threads
from hotplug.gateway.threads_api import ThreadsApi

pytestmark = pytest.mark.anyio
PAGE = Path(__file__).parents[3] / "docs" / "guides" / "gateway-threads.md"
OPENER = "hpo_the-editors"


def exchanges() -> list[tuple[str, str]]:
    """Each request of the page with its answer."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"^```http\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        request, answer = re.split(r"\n\n(?=\d{3}\n)", block)
        found.append((request, answer))
    return found


def fits(shown: Any, given: Any) -> bool:
    """Whether something is what is shown; `…` at the end of a string, or in it, stands for any text."""
    if isinstance(shown, dict) and isinstance(given, dict):
        return shown.keys() == given.keys() and all(fits(shown[name], given[name]) for name in shown)
    if isinstance(shown, list) and isinstance(given, list):
        return len(shown) == len(given) and all(map(fits, shown, given))
    if isinstance(shown, str) and isinstance(given, str):
        return re.fullmatch(re.escape(shown).replace("…", ".+"), given) is not None
    return shown == given


async def test_every_exchange_of_the_page_goes_as_it_is_shown(threads: Threads) -> None:
    openers = {"editor": hashlib.sha256(OPENER.encode()).hexdigest()}
    id_, token = "", ""
    statuses: list[int] = []
    async with served(ThreadsApi(threads, openers)) as base, aiohttp.ClientSession() as session:
        for request, answer in exchanges():
            head, _, body = request.partition("\n\n")
            first, *lines = head.splitlines()
            method, path = first.split(" ")
            headers = dict(line.split(": ", 1) for line in lines)
            headers["Authorization"] = headers["Authorization"].replace("hpo_…", OPENER).replace("hpt_…", token)
            async with session.request(
                method, base + path.replace("t_…", id_), headers=headers, data=body.encode() or None
            ) as got:
                said = await got.json()
                status, _, document = answer.partition("\n")
                assert got.status == int(status), (request, said)
                assert fits(json.loads(document), said), (request, said)
                statuses.append(got.status)
            if got.status == 201:
                id_, token = said["thread"]["id"], said["token"]
    assert statuses == [201, 201, 200, 200, 401]


def test_the_bounds_of_the_page_are_the_codes() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert f"{MOST_OPEN:,} may be open" in text
