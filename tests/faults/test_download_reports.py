"""A field report with a published browser server and a real Chromium behind the gateway: FR-33, downloads.

The server is `@playwright/mcp`, unchanged.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ..gateway.roads import Hall, Thread, until  # noqa: TID252  # tests are no package
from .browsing import BODY, PATIENCE, Site, act, ask, browsing, limit, opened, said, told

pytestmark = [pytest.mark.anyio, pytest.mark.real]

LIMITS = Path(__file__).parents[2] / "examples" / "browser" / "limits.cjs"
INBOX = "<h1>Inbox</h1>" + "".join(
    f"<p><a href='/{kind}/five.bin'>{kind}</a></p>" for kind in ("whole", "sniffed", "announced")
)


async def test_fr_33_a_click_that_starts_a_download_succeeds_and_names_it(tmp_path: Path) -> None:
    async with Site.open(login=INBOX) as site, browsing(tmp_path, "--isolated") as h:
        thread = await _logged_in(h, site)
        answer = await ask(thread, "click", target="text=whole")
        assert not answer.get("isError"), answer
        await told(thread, answer, 'Downloaded file five.bin to "')
        assert (tmp_path / "out" / "five.bin").read_bytes() == BODY
        await _goes_on(thread, site)


@pytest.mark.parametrize("kind", ["sniffed", "announced"])
async def test_fr_33_a_body_that_stalls_fails_at_the_limit_and_leaves_tab_and_login(tmp_path: Path, kind: str) -> None:
    """The limit is an option of the server, an init page; without one it sets none on a download.

    An attachment that the browser must first look into holds up the click itself. One that was announced doesn't: the
    click succeeds and names it, and its end is told by the next answer.
    """
    seconds = 2.0
    options = ("--isolated", "--init-page", str(LIMITS), "--timeout-action", "60000")
    milliseconds = str(int(seconds * 1000))
    async with Site.open(login=INBOX) as site, browsing(tmp_path, *options, PAGE_LIMIT_MS=milliseconds) as h:
        thread = await _logged_in(h, site)
        answer = await ask(thread, "click", target=f"text={kind}")
        if kind == "announced":
            answer = await told(thread, answer, "Downloading file five.bin")
        failed = await told(thread, answer, "five.bin stalled: ", f"after {milliseconds} ms")
        assert failed["isError"]
        assert asyncio.get_running_loop().time() - site.asked[f"/{kind}/five.bin"] >= seconds
        # The browser has left: nothing can come any more.
        async with asyncio.timeout(PATIENCE):
            await site.left.wait()
        await _goes_on(thread, site)
        assert not (tmp_path / "out" / "five.bin").exists()


async def test_fr_33_without_a_limit_of_the_server_the_gateways_ends_what_hangs(tmp_path: Path) -> None:
    """The click fails at the server's limit for acts, but the browser still waits, and with it every later act.

    `call_timeout` ends those, and leaves the child alone, for it gives signs of life: a navigation sets it free, logged
    in as before. What the gateway can't do is to end the browser's waiting: the server ignores cancellations, and a
    body that came after all would be saved.
    """
    async with (
        Site.open(login=INBOX, inbox=INBOX) as site,
        browsing(tmp_path, "--isolated", "--timeout-action", "2000") as h,
    ):
        thread = await _logged_in(h, site)
        failed = await ask(thread, "click", target="text=sniffed")
        assert failed["isError"]
        assert "Timeout 2000ms exceeded" in said(failed)
        await limit(h, 5)
        given_up = await ask(thread, "snapshot")
        assert "it said nothing for 5 s" in given_up["message"]
        assert given_up["data"]["details"] == {"state": "unknown"}
        await limit(h, None)
        assert not site.left.is_set()
        await act(thread, "navigate", url=f"{site.url}/inbox")
        await until(site.left.is_set, PATIENCE)
        await _goes_on(thread, site, "inbox")
        assert not (tmp_path / "out" / "five.bin").exists()


async def _logged_in(h: Hall, site: Site) -> Thread:
    thread = await opened(h)
    await act(thread, "navigate", url=f"{site.url}/login")
    return thread


async def _goes_on(thread: Thread, site: Site, page: str = "login") -> None:
    """The one tab is where it was, its page can be read and used, and the site knows who it is."""
    tabs = await act(thread, "tabs", action="list")
    assert f"- 0: (current) [{page}]({site.url}/{page})" in tabs
    assert "- 1:" not in tabs
    assert 'heading "Inbox"' in await act(thread, "snapshot")
    assert "It is ada." in await act(thread, "evaluate", function="() => fetch('/who').then(who => who.text())")
