"""The database server for tests: the real PostgreSQL."""

import importlib
import sys
from pathlib import Path

import anyio
import psycopg
import pytest

from hotplug.errors import ConfigError
from hotplug.testing import postgres

module = importlib.import_module("hotplug.testing.postgres")

pytestmark = [pytest.mark.anyio, pytest.mark.real]


async def refused(url: str) -> bool:
    try:
        await (await psycopg.AsyncConnection.connect(url)).close()
    except psycopg.OperationalError:
        return True
    return False


def open_to_all(folder: Path) -> None:
    """Where we are root, the server runs as somebody else."""
    for each in (folder, *folder.parents[:2]):
        each.chmod(0o755)


async def test_it_runs_keeps_rows_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_to_all(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    async with postgres(database="shop") as server:
        await server.execute("create table orders (id integer primary key)")
        await server.execute("insert into orders values (%(id)s)", {"id": 42})
        assert await server.execute("select id from orders") == [(42,)]
        assert server.url.endswith(f"@127.0.0.1:{server.port}/shop")
        assert await refused(server.url.replace(server.password, "wrong"))
        url = server.url
    assert await refused(url)
    assert list(tmp_path.iterdir()) == []


async def test_nothing_is_left_when_the_block_is_cancelled() -> None:
    url = ""
    with anyio.CancelScope() as scope:
        async with postgres() as server:
            url = server.url
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert await refused(url)


async def test_it_ends_with_a_program_that_is_killed(tmp_path: Path) -> None:
    program = (
        "import anyio\nfrom hotplug.testing.postgres import postgres\n"
        "async def main():\n"
        "    async with postgres() as server:\n"
        "        print(server.url, flush=True)\n"
        "        await anyio.sleep_forever()\n"
        "anyio.run(main)\n"
    )
    open_to_all(tmp_path)
    source = str(Path(str(module.__file__)).parents[2])
    process = await anyio.open_process(
        [sys.executable, "-c", program], env={"PYTHONPATH": source, "PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)}
    )
    assert process.stdout is not None
    url = (await process.stdout.receive()).decode().strip()
    assert not await refused(url)
    process.kill()
    await process.aclose()
    with anyio.fail_after(20):
        while not await refused(url):
            await anyio.sleep(0.05)


async def test_a_machine_without_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(module, "_DEBIAN", tmp_path)
    with pytest.raises(ConfigError, match="is not installed") as caught:
        async with postgres():
            pass
    assert "apt-get install postgresql" in str(caught.value.hint)
