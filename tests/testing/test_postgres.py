"""The database server for tests: the real PostgreSQL."""

import importlib
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


async def test_it_runs_keeps_rows_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:2]:
        parent.chmod(0o755)
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


async def test_a_machine_without_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(module, "_DEBIAN", tmp_path)
    with pytest.raises(ConfigError, match="is not installed") as caught:
        async with postgres():
            pass
    assert "apt-get install postgresql" in str(caught.value.hint)
