"""A database as a witness: rows compared by their key, and facts that a query gives. Any SQLAlchemy URL."""

from __future__ import annotations

import hashlib
import json
import math
import re
import secrets
import sqlite3
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote

import anyio.to_thread

from hotplug.connect.masking import Masker
from hotplug.errors import ConfigError
from hotplug.evidence.vocabulary import ProvenanceClass
from hotplug.profile.summaries import REDACTED, credential_name, state_change, state_fact
from hotplug.witness.comparing import Comparing, Look, Thing
from hotplug.witness.watching import CannotLook, redact, spot

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine import URL

__all__ = ["SqlQuery"]

_READS: Final = re.compile(
    r"(?:\s+|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/|\()*(?:select|with|values|table)\b", re.IGNORECASE
)
# What an asynchronous application calls the driver that we use.
_DRIVERS: Final = {
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+asyncpg": "postgresql+psycopg",
    "postgresql+psycopg_async": "postgresql+psycopg",
    "sqlite": "sqlite+pysqlite",
    "sqlite+aiosqlite": "sqlite+pysqlite",
}


class SqlQuery(Comparing):
    """Rows of a query, compared by key at the opening and at every look; and facts.

    `orders 42 created`, `updated`, `deleted` for each row that came, changed or went; `orders.count = 3` for each fact.
    Several rows of one key are several observations, so a thing that was done twice is seen twice.

    Its `state` is declared independent and of consequence: that is true only where the data crossed the subject's
    boundary, as into the database behind a server. Where the subject is the database, or what is read is written by
    the code that handles the action for itself alone, say `independent=False`.

    Nothing is written: in a read-only transaction where the database has them, and never committed. Columns of
    credential-like names and those of `sensitive` are shown as `[redacted]` and stand in no summary; a change of them
    is still an `updated`.

    Args:
        url: A SQLAlchemy URL, such as `postgresql://reader@db/shop` or `sqlite:///shop.db`. A password in it is never
            shown. Drivers of asynchronous applications (`asyncpg`, `aiosqlite`) are replaced by ordinary ones.
        query: Gives the rows; one `select`.
        key: The column, or columns, that tell the rows apart; by default the first.
        kind: What a row is called in summaries; one word.
        facts: Queries that give one value each, by the name of the fact.
        parameters: Values of `:name` in the queries.
        columns: Those that are shown with an observation; by default all.
        sensitive: Columns that are never shown.
        limit: Rows that are compared at most; more is a blind spot.
        timeout: Seconds that one look may take.

    Raises:
        ConfigError: SQLAlchemy or the driver is missing (`pip install 'hotplug[sql]'`), the URL can't be read, or a
            key, a kind or a query can't be used.
    """

    def __init__(
        self,
        url: str,
        *,
        query: str | None = None,
        key: str | Sequence[str] | None = None,
        kind: str = "row",
        facts: Mapping[str, str] | None = None,
        parameters: Mapping[str, Any] | None = None,
        columns: Collection[str] | None = None,
        sensitive: Collection[str] = (),
        limit: int = 10_000,
        timeout: float = 10.0,
        independent: bool = True,
        name: str = "sql",
    ) -> None:
        self._url = _url(url)
        super().__init__(name, _masked(self._url), independent=independent, timeout=timeout)
        self._mask = Masker([self._url.password] if self._url.password else ())
        self._query = query
        self._key = (key,) if isinstance(key, str) else tuple(key or ())
        self._kind = kind
        self._facts = dict(facts or {})
        self._parameters = dict(parameters or {})
        self._columns = None if columns is None else frozenset(columns)
        self._sensitive = frozenset(sensitive)
        self._limit = limit
        self._salt = secrets.token_bytes(16)
        self._raw: Any = None
        self._check()
        self._engine = self._make_engine()

    def _check(self) -> None:
        if self._query is None and not self._facts:
            raise ConfigError("a SQL witness without query and facts sees nothing", hint="give query= or facts=")
        for text in filter(None, (self._query, *self._facts.values())):
            if not _READS.match(text):
                raise ConfigError(f"a witness only reads, and {text[:60]!r} is no select")
        for column in self._key:
            if self._is_sensitive(column):
                raise ConfigError(f"the key {column!r} is sensitive, and would stand in summaries", hint="use another")
        for name in self._facts:
            if self._is_sensitive(name.rpartition(".")[2]):
                raise ConfigError(f"the fact {name!r} is sensitive, and would stand in a summary")
        try:
            state_change(self._kind, "1", "created")
            for name in self._facts:
                state_fact(name, 1)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        if self._limit < 1:
            raise ConfigError(f"a limit of {self._limit} rows shows nothing")

    def provenance(self, channel: str) -> tuple[str, str, ProvenanceClass]:
        """The database; rows and values read by SQL."""
        del channel
        return self.locator, "rows compared by key, and facts, read by SQL in one transaction", "authoritative"

    async def aclose(self) -> None:
        """Close the connections."""
        await super().aclose()
        await anyio.to_thread.run_sync(self._engine.dispose)

    async def _read(self) -> Look:
        try:
            return await anyio.to_thread.run_sync(self._in_thread, abandon_on_cancel=True)
        except BaseException:
            interrupt = getattr(self._raw, "interrupt", None)
            if interrupt is not None:
                interrupt()  # a query of SQLite has no time limit of its own
            raise

    def _in_thread(self) -> Look:
        from sqlalchemy.exc import DBAPIError, SQLAlchemyError

        try:
            with self._reading() as connection:
                rows, things, redacted = self._rows(connection)
                facts = {name: self._fact(connection, name, text) for name, text in self._facts.items()}
        except DBAPIError as error:
            raise CannotLook(self._said(error.orig or error)) from None
        except (SQLAlchemyError, OSError) as error:
            raise CannotLook(self._said(error)) from None
        spots = [spot("redacted", None, f"{self._kind}: {', '.join(sorted(redacted))}")] if redacted else []
        if rows <= self._limit:
            return Look(tuple(things), facts, tuple(spots))
        said = f"{self.locator}: only {self._limit} rows of {self._kind} were read, and there are more"
        spots.append(spot("buffer-truncated", self.channel, said, "narrow the query, or give a higher limit="))
        return Look(tuple(things), facts, tuple(spots), lambda ref: True)

    def _rows(self, connection: Connection) -> tuple[int, list[Thing], frozenset[str]]:
        from sqlalchemy import text

        if self._query is None:
            return 0, [], frozenset()
        # An unfinished statement would keep its lock for as long as anything knows of it.
        with closing(connection.execute(text(self._query), self._bound(self._query))) as result:
            names = list(result.keys())
            key = self._key or tuple(names[:1])
            missing = [column for column in key if column not in names]
            if missing or self._is_sensitive(key[0]):
                raise CannotLook(
                    f"the query gives no column {missing[0]!r}, but {', '.join(names)}"
                    if missing
                    else f"the first column {key[0]!r} is sensitive and can't be the key",
                    remedy="name the column that tells rows apart with key=",
                )
            rows = result.fetchmany(self._limit + 1)
        things: list[Thing] = []
        redacted: frozenset[str] = frozenset()
        for row in rows[: self._limit]:
            whole = dict(zip(names, row, strict=True))
            shown, hidden = redact(
                {name: _json(value) for name, value in whole.items() if self._is_shown(name)}, self._sensitive
            )
            redacted |= hidden
            refs = [_ref(whole[column]) for column in key]
            # A slash within a part isn't one between two.
            ref = refs[0] if len(refs) == 1 else "/".join(one.replace("/", "%2F") for one in refs)
            things.append(Thing(self._kind, ref, self._fingerprint(whole), shown))
        return len(rows), things, redacted

    def _fact(self, connection: Connection, name: str, query: str) -> Any:
        from sqlalchemy import text

        with closing(connection.execute(text(query), self._bound(query))) as result:
            rows = result.fetchmany(2)
        if len(rows) > 1 or (rows and len(rows[0]) != 1):
            raise CannotLook(f"the query of the fact {name!r} gives more than one value")
        return _json(rows[0][0]) if rows else None

    def _bound(self, query: str) -> dict[str, Any]:
        from sqlalchemy import text

        return {name: value for name, value in self._parameters.items() if name in text(query).compile().params}

    def _is_sensitive(self, column: str) -> bool:
        return column in self._sensitive or credential_name(column)

    def _is_shown(self, column: str) -> bool:
        return self._columns is None or column in self._columns

    def _fingerprint(self, row: Mapping[str, Any]) -> str:
        text = json.dumps({name: _json(value, exact=True) for name, value in row.items()}, sort_keys=True, default=str)
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=self._salt).hexdigest()

    def _said(self, error: BaseException) -> str:
        return self._mask.line(next(iter(str(error).strip().splitlines()), "") or type(error).__name__)

    @contextmanager
    def _reading(self) -> Generator[Connection]:
        """A connection in a transaction that sees one state and can't write; never committed."""
        from sqlalchemy import text

        with self._engine.connect() as connection:
            self._raw = connection.connection.driver_connection
            try:
                match connection.dialect.name:
                    case "sqlite":
                        connection.exec_driver_sql("begin")
                    case "postgresql":
                        connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
                        limit = max(1, int(self.timeout * 1000))
                        connection.execute(text(f"set local statement_timeout = {limit}"))
                    case "mysql" | "mariadb":
                        connection.exec_driver_sql("start transaction read only, with consistent snapshot")
                    case _:
                        pass
                yield connection
            finally:
                self._raw = None
                connection.rollback()

    def _make_engine(self) -> Engine:
        from sqlalchemy import create_engine
        from sqlalchemy.exc import ArgumentError, NoSuchModuleError
        from sqlalchemy.pool import NullPool

        arguments: dict[str, Any] = {"poolclass": NullPool, "hide_parameters": True}
        if self._url.get_backend_name() == "sqlite":
            path = self._url.database
            if path in (None, "", ":memory:"):
                raise ConfigError("a SQLite database in memory can't be looked at from elsewhere", hint="use a file")
            arguments["creator"] = lambda: _open_sqlite(str(path), self.timeout)
        elif self._url.get_backend_name() == "postgresql":
            arguments["connect_args"] = {"connect_timeout": max(2, round(self.timeout))}
        try:
            engine = create_engine(self._url, **arguments)
        except (ArgumentError, NoSuchModuleError) as error:
            raise ConfigError(f"{self.locator} can't be used: {self._said(error)}") from None
        except ImportError as error:
            raise ConfigError(
                f"the driver for {self.locator} is missing: {error}", hint="pip install 'hotplug[sql]'"
            ) from None
        return engine


def _open_sqlite(path: str, timeout: float) -> sqlite3.Connection:
    if path.startswith("file:"):
        address = path if "mode=" in path else f"{path}{'&' if '?' in path else '?'}mode=ro"
    else:
        address = f"file:{quote(str(Path(path).absolute()))}?mode=ro"
    connection = sqlite3.connect(address, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False)
    connection.execute("pragma query_only = on")
    return connection


def _url(text: str) -> URL:
    try:
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError
    except ImportError:
        raise ConfigError("a SQL witness needs SQLAlchemy", hint="pip install 'hotplug[sql]'") from None
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # The text may hold a password.
        raise ConfigError(
            "that is no database URL", hint="such as postgresql://user@host/db or sqlite:///file.db"
        ) from None
    return url.set(drivername=_DRIVERS.get(url.drivername, url.drivername))


def _masked(url: URL) -> str:
    query = {name: REDACTED if credential_name(name) else value for name, value in url.query.items()}
    shown = url.set(password=None, query=query, drivername=url.get_backend_name())
    return shown.render_as_string(hide_password=True)


def _ref(value: Any) -> str:
    shown = _json(value, exact=True)
    return shown if isinstance(shown, str) and shown else json.dumps(shown, ensure_ascii=False, default=str)


def _json(value: Any, *, exact: bool = False) -> Any:
    """A value of a column as JSON; `exact` keeps what is too long to be shown."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no such number
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Decimal):
        if not value.is_finite():
            return str(value)
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes | bytearray | memoryview):
        raw = bytes(cast("bytes", value))
        return raw.hex() if exact else f"<{len(raw)} bytes>"
    if isinstance(value, Mapping):
        return {str(name): _json(item, exact=exact) for name, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_json(item, exact=exact) for item in cast("Sequence[Any]", value)]
    return str(value)
