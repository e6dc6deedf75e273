"""The calendar server for tests: the real Radicale."""

import importlib
import socket
import stat
import sys
from pathlib import Path

import anyio
import httpx2
import pytest

from hotplug.errors import ConfigError, ConnectError
from hotplug.testing import radicale

module = importlib.import_module("hotplug.testing.radicale")

pytestmark = [pytest.mark.anyio, pytest.mark.real]

ICAL = "\r\n".join(
    [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//test//EN",
        "BEGIN:VEVENT",
        "UID:one",
        "DTSTAMP:20261001T000000Z",
        "DTSTART:20261026T130000Z",
        "DTEND:20261026T140000Z",
        "SUMMARY:Lünch\\, maybe 🍜",
        "END:VEVENT",
        "END:VCALENDAR",
        "",
    ]
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def refused(url: str) -> bool:
    try:
        async with httpx2.AsyncClient(trust_env=False) as client:
            await client.get(url)
    except httpx2.ConnectError:
        return True
    return False


async def test_what_is_put_is_stored_and_read_back_by_http() -> None:
    async with radicale(calendars={"office": "Work", "home": "Home & Garden"}) as server:
        assert await server.stored() == []
        etag = await server.put("office", "one.ics", ICAL)
        [event] = await server.stored()
        assert (event.collection, event.href, event.etag) == ("office", "/alice/office/one.ics", etag)
        assert "\r\nSUMMARY:Lünch\\, maybe 🍜\r\n" in event.ical
        await server.remove("office", "one.ics")
        assert await server.stored() == []


async def test_calendars_carry_their_display_names() -> None:
    async with radicale(calendars={"office": "Work", "other": "A & B <c>"}) as server:
        async with httpx2.AsyncClient(auth=(server.username, server.password), trust_env=False) as client:
            answer = await client.request("PROPFIND", server.user_url, headers={"Depth": "1"})
        assert "<displayname>Work</displayname>" in answer.text
        assert "A &amp; B &lt;c&gt;" in answer.text


async def test_a_removed_calendar_takes_its_events_along() -> None:
    async with radicale(calendars={"office": "Work"}) as server:
        await server.add_calendar("extra", "Work")
        await server.put("extra", "one.ics", ICAL)
        await server.remove_calendar("extra")
        assert await server.stored() == []
        with pytest.raises(ConnectError, match=r"MKCALENDAR .* with 4\d\d"):
            await server.add_calendar("office", "Again")


async def test_a_wrong_password_is_refused() -> None:
    async with (
        radicale(calendars={"office": "Work"}) as server,
        httpx2.AsyncClient(auth=(server.username, "wrong"), trust_env=False) as client,
    ):
        answer = await client.request("PROPFIND", server.user_url)
        assert answer.status_code == 401


async def test_two_servers_run_side_by_side_with_passwords_and_events_of_their_own() -> None:
    async with radicale(calendars={"office": "Work"}) as one, radicale(calendars={"office": "Work"}) as two:
        assert one.url != two.url
        assert one.password != two.password
        await one.put("office", "one.ics", ICAL)
        assert await two.stored() == []


async def test_nothing_is_left_when_the_block_ends_in_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    url = ""

    async def fail() -> None:
        nonlocal url
        async with radicale() as server:
            url = server.url
            [folder] = tmp_path.iterdir()
            assert stat.S_IMODE((folder / "users").stat().st_mode) == 0o600
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        await fail()
    assert await refused(url)
    assert list(tmp_path.iterdir()) == []


async def test_nothing_is_left_when_the_block_is_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    url = ""
    with anyio.CancelScope() as scope:
        async with radicale() as server:
            url = server.url
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert await refused(url)
    assert list(tmp_path.iterdir()) == []


async def test_it_ends_with_a_program_that_is_killed(tmp_path: Path) -> None:
    program = (
        "import anyio\nfrom hotplug.testing.radicale import radicale\n"
        "async def main():\n"
        "    async with radicale() as server:\n"
        "        print(server.url, flush=True)\n"
        "        await anyio.sleep_forever()\n"
        "anyio.run(main)\n"
    )
    source = str(Path(str(module.__file__)).parents[2])
    process = await anyio.open_process(
        [sys.executable, "-c", program], env={"PYTHONPATH": source, "TMPDIR": str(tmp_path)}
    )
    assert process.stdout is not None
    url = (await process.stdout.receive()).decode().strip()
    assert not await refused(url)
    process.kill()
    await process.aclose()
    with anyio.fail_after(10):
        while not await refused(url):
            await anyio.sleep(0.05)


async def test_a_server_that_ends_early_shows_its_last_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SETTINGS", "[server]\nhosts = nonsense\n")
    with pytest.raises(ConnectError, match="exit code") as caught:
        async with radicale():
            pass
    assert any("hosts" in line for line in caught.value.log)


async def test_a_port_taken_meanwhile_is_given_up_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        free = module._free_port()
        ports = iter([taken, free])
        monkeypatch.setattr(module, "_free_port", lambda: next(ports))
        async with radicale(calendars={"office": "Work"}) as server:
            assert server.url == f"http://127.0.0.1:{free}/"


async def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"hotplug\[demo\]"):
        async with radicale():
            pass
