"""A real PostgreSQL server on loopback, with a cluster of its own, for as long as a block runs.

```python
async with postgres() as server:
    await server.execute("create table orders (id serial primary key, total numeric)")
    print(server.url)   # postgresql://hotplug:…@127.0.0.1:41234/hotplug
```

It needs `initdb` and `postgres` (Debian: `apt-get install postgresql`), which need not run as a service, and psycopg
(`pip install 'hotplug[sql]'`). PostgreSQL refuses to run as root; where we are root, it runs as the user `postgres`,
or as `nobody`.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio

from hotplug.errors import ConfigError, ConnectError

__all__ = ["PostgresServer", "postgres"]

_START_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.02
_PORTS_TRIED: Final = 5
_DEBIAN: Final = Path("/usr/lib/postgresql")

# PostgreSQL ends with the program that started it, even when that is killed: the shell's standard input closes then.
# Interrupted, it shuts down at once and in order.
_CHILD: Final = """
exec 3<&0
"$@" </dev/null 3<&- &
server=$!
(cat <&3 >/dev/null; kill -INT "$server" 2>/dev/null) &
exec 3<&-
wait "$server"
"""

# It is only for a while: nothing has to survive a crash of the machine.
_SETTINGS: Final = """
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = ''
fsync = off
synchronous_commit = off
full_page_writes = off
max_connections = 30
shared_buffers = 16MB
"""


class PostgresServer:
    """A running PostgreSQL with one user and one database; made by `postgres()`.

    Args:
        port: On 127.0.0.1.
        username: The only user, who may do everything.
        password: Random; different for each server.
        database: The only database.
    """

    def __init__(self, port: int, username: str, password: str, database: str) -> None:
        self.port = port
        self.username = username
        self.password = password
        self.database = database

    @property
    def url(self) -> str:
        """The database's URL, with the password."""
        return f"postgresql://{self.username}:{self.password}@127.0.0.1:{self.port}/{self.database}"

    async def execute(self, statement: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Run one statement and commit; the rows come back where it gives any."""
        import psycopg

        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
            cursor = await connection.execute(statement.encode(), parameters)
            return list(await cursor.fetchall()) if cursor.description else []


@asynccontextmanager
async def postgres(*, username: str = "hotplug", database: str = "hotplug") -> AsyncGenerator[PostgresServer]:
    """Runs PostgreSQL on a free port of 127.0.0.1 until the block ends, then removes all that it kept.

    Args:
        username: The only user; the password is random.
        database: The database that is made.

    Raises:
        ConfigError: PostgreSQL or psycopg isn't installed.
        ConnectError: It ended early, or wasn't ready in 30 s; `log` holds its last lines.
    """
    initdb, server = _program("initdb"), _program("postgres")
    if importlib.util.find_spec("psycopg") is None:
        raise ConfigError("the package `psycopg` is not installed", hint="pip install 'hotplug[sql]'")
    password = secrets.token_urlsafe(18)
    with tempfile.TemporaryDirectory(prefix="hotplug-postgres-") as name:
        folder = Path(name)
        given = folder / "password"
        given.touch(mode=0o600)
        given.write_text(password, encoding="utf-8")
        user = _unprivileged()
        if user is not None:
            for path in (folder, given):
                os.chown(path, *user)
        cluster = folder / "cluster"
        made = await anyio.run_process(
            [
                initdb,
                f"--pgdata={cluster}",
                f"--username={username}",
                f"--pwfile={given}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
            ],
            check=False,
            cwd=folder,
            env=_environment(),
            **_as(user),
        )
        if made.returncode != 0:
            raise ConnectError("initdb failed", log=tuple(made.stderr.decode(errors="replace").splitlines()[-10:]))
        async with _running(server, cluster, folder / "log", user, username, password) as port:
            running = PostgresServer(port, username, password, "postgres")
            await running.execute(f'create database "{database}"')
            running.database = database
            yield running


@asynccontextmanager
async def _running(
    program: str, cluster: Path, log: Path, user: tuple[int, int] | None, username: str, password: str
) -> AsyncGenerator[int]:
    for tries_left in reversed(range(_PORTS_TRIED)):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        settings = cluster / "postgresql.auto.conf"
        settings.write_text(_SETTINGS.format(port=port), encoding="utf-8")
        if user is not None:
            os.chown(settings, *user)
        with log.open("wb") as sink:
            process = await anyio.open_process(
                ["/bin/sh", "-c", _CHILD, "sh", program, "-D", str(cluster)],
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
                cwd=cluster,
                env=_environment(),
                **_as(user),
            )
        try:
            if await _ready(process, log, PostgresServer(port, username, password, "postgres")):
                yield port
                return
        finally:
            with anyio.CancelScope(shield=True):
                assert process.stdin is not None
                await process.stdin.aclose()
                with anyio.move_on_after(_STOP_SECONDS):
                    await process.wait()
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGQUIT)
                    await process.wait()
                await process.aclose()
        lines = _lines(log)
        if not tries_left or not any("could not bind" in line for line in lines):
            raise ConnectError("PostgreSQL wasn't ready in time, or ended", log=lines[-10:], hint="see `log`")


async def _ready(process: Any, log: Path, server: PostgresServer) -> bool:
    import psycopg

    with anyio.move_on_after(_START_SECONDS):
        while process.returncode is None:
            if any("ready to accept connections" in line for line in _lines(log)):
                try:
                    await server.execute("select 1")
                except psycopg.OperationalError:
                    pass
                else:
                    return True
            await anyio.sleep(_POLL_SECONDS)
    return False


def _lines(log: Path) -> tuple[str, ...]:
    return tuple(log.read_text(encoding="utf-8", errors="replace").splitlines())


def _program(name: str) -> str:
    """The newest installed; Debian keeps them out of the PATH."""
    versions = sorted(_DEBIAN.glob(f"*/bin/{name}"), key=lambda path: [int(part) for part in path.parts[4].split(".")])
    found = str(versions[-1]) if versions else shutil.which(name)
    if found is None:
        raise ConfigError(f"PostgreSQL's `{name}` is not installed", hint="Debian: apt-get install postgresql")
    return found


def _unprivileged() -> tuple[int, int] | None:
    if os.geteuid() != 0:
        return None
    import pwd

    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return found.pw_uid, found.pw_gid
    raise ConfigError("PostgreSQL refuses to run as root, and there is no other user", hint="make a user `postgres`")


def _as(user: tuple[int, int] | None) -> dict[str, Any]:
    return {} if user is None else {"user": user[0], "group": user[1], "extra_groups": []}


def _environment() -> dict[str, str]:
    """Ours, without what would steer PostgreSQL elsewhere."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}
