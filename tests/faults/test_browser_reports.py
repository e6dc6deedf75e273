"""Field reports with a published browser server and a real Chromium behind the gateway: FR-31, FR-32 and FR-34.

The server is `@playwright/mcp`, unchanged. What its answers are made of is its own; the gateway owes that they come
through, promptly, each to whose page it is, and that what never comes has a limit.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from ..gateway.roads import Thread  # noqa: TID252  # tests are no package
from .browsing import Chromium, Site, Window, act, ask, browsing, limit, opened, said

pytestmark = [pytest.mark.anyio, pytest.mark.real]

PAGES = {name: f"<h1>This is page {name}</h1>" for name in ("one", "two", "three")}
DIALOGS = {
    kind: f"<script>{kind}('Stop here?')</script><h1>Past {kind}</h1>" for kind in ("alert", "confirm", "prompt")
}

# What would change with the window in front: whether it is seen and has the focus, its size, and what it noticed.
STATE = "JSON.stringify([document.visibilityState, document.hasFocus(), innerWidth, innerHeight, scrollY, noticed])"
FRONT = """<h1>In front</h1><script>
noticed = [];
for (const event of ['blur', 'focus', 'visibilitychange', 'resize', 'scroll', 'pagehide'])
  addEventListener(event, () => noticed.push(event), true);
</script>"""


# FR-31


@pytest.mark.parametrize("browsers", ["each its own", "one for all"])
async def test_fr_31_threads_read_only_their_own_page_whatever_another_closes(tmp_path: Path, browsers: str) -> None:
    """Each thread's calls come over new connections; one client is of the handshake era, the others aren't.

    One browser for all is shared by three children with `--isolated`, without which they would share its tabs.
    """
    async with AsyncExitStack() as stack:
        site = await stack.enter_async_context(Site.open(**PAGES))
        shared = browsers == "one for all"
        at = (await stack.enter_async_context(Chromium.running(tmp_path))).url if shared else None
        h = await stack.enter_async_context(browsing(tmp_path, "--isolated", at=at))
        one, third = await opened(h), await opened(h)
        two = await (await opened(h)).session()
        who = {"one": one, "two": two, "three": third}
        await asyncio.gather(*(act(thread, "navigate", url=f"{site.url}/{name}") for name, thread in who.items()))

        async def reads(name: str) -> None:
            page = await act(who[name], "snapshot")
            assert [one for one in PAGES if f"This is page {one}" in page] == [name]
            assert f"- 0: (current) [{name}]({site.url}/{name})" in (
                tabs := await act(who[name], "tabs", action="list")
            )
            assert "- 1:" not in tabs

        await asyncio.gather(*map(reads, who))
        await act(third, "tabs", action="new", url=f"{site.url}/three")
        await act(third, "tabs", action="close", index=0)
        await asyncio.gather(*map(reads, who))
        await act(third, "close")
        await asyncio.gather(reads("one"), reads("two"))
        await h.gateway.threads.close(third.id)
        for name in ("one", "two", "one"):
            await reads(name)


# FR-32


async def test_fr_32_a_dialog_is_told_within_two_seconds_and_so_is_what_it_blocks(tmp_path: Path) -> None:
    """The time is counted from the page's arrival; the browser runs already.

    An act on the page is refused with the dialog. A navigation isn't done either, and its answer names the dialog too,
    but as no error: how that is told is the server's own.
    """
    async with Site.open(**PAGES, **DIALOGS) as site, browsing(tmp_path, "--isolated") as h:
        thread = await opened(h)
        await act(thread, "navigate", url=f"{site.url}/one")
        for kind in DIALOGS:
            answer = await act(thread, "navigate", url=f"{site.url}/{kind}")
            assert asyncio.get_running_loop().time() - site.asked[f"/{kind}"] < 2
            stands = f'["{kind}" dialog with message "Stop here?"]'
            assert stands in answer
            for tool, more in (("snapshot", {}), ("take_screenshot", {}), ("click", {"target": "h1"})):
                refused = await ask(thread, tool, **more)
                assert refused["isError"]
                assert "does not handle the modal state" in said(refused)
                assert stands in said(refused)
            elsewhere = await act(thread, "navigate", url=f"{site.url}/two")
            assert stands in elsewhere
            assert f"Page URL: {site.url}/{kind}" in elsewhere
            await act(thread, "handle_dialog", accept=True)
            assert f"Past {kind}" in await act(thread, "snapshot")
        assert "/two" not in site.asked


async def test_fr_32_a_click_that_opens_a_dialog_is_answered_while_it_stands(tmp_path: Path) -> None:
    button = "<button onclick=\"this.textContent = confirm('Really?')\">Delete</button>"
    async with Site.open(page=button) as site, browsing(tmp_path, "--isolated") as h:
        thread = await opened(h)
        await act(thread, "navigate", url=f"{site.url}/page")
        assert '["confirm" dialog with message "Really?"]' in await act(thread, "click", target="button")
        await act(thread, "handle_dialog", accept=False)
        assert 'button "false"' in await act(thread, "snapshot")


async def test_fr_32_a_dialog_that_somebody_closes_by_hand_leaves_nothing_behind(tmp_path: Path) -> None:
    """By hand: over another connection to the browser, of which the server knows nothing."""
    async with (
        Site.open(**PAGES, **DIALOGS) as site,
        Chromium.running(tmp_path) as browser,
        browsing(tmp_path, at=browser.url) as h,
    ):
        thread = await opened(h)
        await act(thread, "navigate", url=f"{site.url}/one")
        # Whoever comes after a dialog has opened is told nothing of it.
        async with browser.watching(f"{site.url}/one") as person:
            await person.ask("Page.enable")
            assert '["alert" dialog' in await act(thread, "navigate", url=f"{site.url}/alert")
            assert (await ask(thread, "snapshot"))["isError"]
            await person.ask("Page.handleJavaScriptDialog", accept=True)
            await person.becomes("document.readyState", "complete")
            # The browser tells each of its two connections for itself, in no order.
            async with asyncio.timeout(20):
                while (page := await ask(thread, "snapshot")).get("isError"):
                    assert "does not handle the modal state" in said(page)
            assert "Past alert" in said(page)
            nothing = await ask(thread, "handle_dialog", accept=True)
            assert "can only be used when there is related modal state" in said(nothing)
        await act(thread, "navigate", url=f"{site.url}/two")
        assert "This is page two" in await act(thread, "snapshot")


# FR-34


async def test_fr_34_a_hidden_tab_is_captured_and_the_one_in_front_notices_nothing(tmp_path: Path) -> None:
    """The tab that the server acts on has opened another, which stands before it since.

    The server's answer doesn't say that the page was hidden: that is the browser profile's matter.
    """
    behind = "<body style='background: teal'><h1>Behind</h1>"
    async with (
        Site.open(behind=behind, front=FRONT) as site,
        Chromium.running(tmp_path) as browser,
        browsing(tmp_path, at=browser.url) as h,
    ):
        thread = await opened(h)
        await act(thread, "navigate", url=f"{site.url}/behind")
        seen = _image(await ask(thread, "take_screenshot"))
        async with browser.watching(f"{site.url}/behind") as back:
            await act(thread, "evaluate", function="() => { window.open('/front') }")
            async with browser.watching(f"{site.url}/front") as front:
                before = await _settled(thread, back, front)
                async with asyncio.timeout(20):
                    assert _image(await ask(thread, "take_screenshot")) == seen
                    assert "Behind" in await act(thread, "snapshot")
                assert await front.value(STATE) == before
                assert await back.value("document.visibilityState") == "hidden"


async def test_fr_34_what_waits_for_drawing_in_a_hidden_tab_ends_at_a_limit(tmp_path: Path) -> None:
    """A click has the server's limit. A script that waits has none but the gateway's `call_timeout`."""
    behind = "<button>Behind</button>"
    async with (
        Site.open(behind=behind, front=FRONT) as site,
        Chromium.running(tmp_path) as browser,
        browsing(tmp_path, "--timeout-action", "2000", at=browser.url) as h,
    ):
        thread = await opened(h)
        await act(thread, "navigate", url=f"{site.url}/behind")
        async with browser.watching(f"{site.url}/behind") as back:
            await act(thread, "evaluate", function="() => { window.open('/front') }")
            async with browser.watching(f"{site.url}/front") as front:
                before = await _settled(thread, back, front)
                refused = await ask(thread, "click", target="button")
                assert refused["isError"]
                assert "Timeout 2000ms exceeded" in said(refused)
                await limit(h, 5)
                waiting = "() => new Promise(drawn => requestAnimationFrame(drawn))"
                given_up = await ask(thread, "evaluate", function=waiting)
                assert "it said nothing for 5 s" in given_up["message"]
                assert given_up["data"]["details"] == {"state": "unknown"}
                await limit(h, None)
                assert await front.value(STATE) == before
                # The same child serves on, and whoever asks the page learns that it is hidden.
                assert '"hidden"' in await act(thread, "evaluate", function="() => document.visibilityState")


async def _settled(thread: Thread, back: Window, front: Window) -> str:
    """What the tab in front is like, once it is there and the other is hidden."""
    await front.becomes("[document.readyState, document.visibilityState].join()", "complete,visible")
    await back.becomes("document.visibilityState", "hidden")
    tabs = await act(thread, "tabs", action="list")
    assert "- 0: (current) [behind]" in tabs
    assert "- 1: [front]" in tabs
    return await front.value(STATE)


def _image(answer: dict[str, Any]) -> str:
    assert not answer.get("isError"), answer
    return next(one["data"] for one in answer["content"] if one["type"] == "image")
