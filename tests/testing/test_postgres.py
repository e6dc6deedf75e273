"""The database server for tests: the real PostgreSQL."""

import importlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
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


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that others may enter: where we are root, the server runs as somebody else. Those of pytest are ours."""
    made = Path(tempfile.mkdtemp(prefix="hotplug-test-", dir="/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


async def test_it_runs_keeps_rows_and_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    async with postgres(database="shop") as server:
        await server.execute("create table orders (id integer primary key)")
        await server.execute("insert into orders values (%(id)s)", {"id": 42})
        assert await server.execute("select id from orders") == [(42,)]
        assert server.url.endswith(f"@127.0.0.1:{server.port}/shop")
        assert await refused(server.url.replace(server.password, "wrong"))
        url = server.url
    assert await refused(url)
    assert list(folder.iterdir()) == []


async def test_nothing_is_left_when_the_block_is_cancelled() -> None:
    url = ""
    with anyio.CancelScope() as scope:
        async with postgres() as server:
            url = server.url
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert await refused(url)


async def test_it_ends_with_a_program_that_is_killed(folder: Path) -> None:
    program = (
        "import anyio\nfrom hotplug.testing.postgres import postgres\n"
        "async def main():\n"
        "    async with postgres() as server:\n"
        "        print(server.url, flush=True)\n"
        "        await anyio.sleep_forever()\n"
        "anyio.run(main)\n"
    )
    source = str(Path(str(module.__file__)).parents[2])
    process = await anyio.open_process(
        [sys.executable, "-c", program], env={"PYTHONPATH": source, "PATH": "/usr/bin:/bin", "TMPDIR": str(folder)}
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
