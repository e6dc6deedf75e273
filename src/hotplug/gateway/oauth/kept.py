"""Logins as they are kept: for each server one file that only its owner can read, or an entry of the system's keyring.

A login is bound to its server's address: at another one it counts for nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Generator, Hashable, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol, cast

from hotplug.errors import ConfigError, StoreError
from hotplug.store.whole import as_file_errors, locked, read_content, remove_leftovers, staged, sync_folder

__all__ = ["Keep", "Login", "LoginKeeper", "default_login_folder", "keeper_of", "logins_of"]

Keep = Literal["file", "keyring"]
"""Where a login is kept."""

_SCHEMA: Final = "hotplug.login/1"
_PATIENCE: Final = 20.0
_SERVICE: Final = "hotplug login"
_ABSENT: Final = "absent"


@dataclass(frozen=True, slots=True)
class Login:
    """What a server's authorization server gave, and what it takes to have it renewed and revoked.

    Args:
        server: The server's name in the configuration.
        url: Its address, without credentials: to be shown.
        bound: SHA-256 of the whole address.
        tokens: As RFC 6749, 5.1 has them.
        obtained_at: When, in seconds since 1970.
        expires_at: When the access token ends; None: nobody said.
        client: The client that was registered (RFC 7591); of a configured one only its id.
        resource: The server's metadata (RFC 9728), where it has any.
        authorization: Its authorization server's metadata (RFC 8414), where it has any.
    """

    server: str
    url: str
    bound: str
    tokens: Mapping[str, Any] = field(repr=False)
    obtained_at: float
    expires_at: float | None = None
    client: Mapping[str, Any] | None = field(default=None, repr=False)
    resource: Mapping[str, Any] | None = field(default=None, repr=False)
    authorization: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def access_token(self) -> str:
        """What each request carries."""
        return str(self.tokens["access_token"])

    @property
    def renewable(self) -> bool:
        """Whether it can be renewed without a person."""
        return bool(self.tokens.get("refresh_token")) and self.client is not None

    @property
    def scopes(self) -> tuple[str, ...]:
        """What it reaches, as far as anybody said."""
        return tuple(str(self.tokens.get("scope") or "").split())

    @property
    def secret_values(self) -> tuple[str, ...]:
        """What must stand in no text."""
        client = self.client or {}
        values = (
            *(self.tokens.get(name) for name in ("access_token", "refresh_token", "id_token")),
            *(client.get(name) for name in ("client_secret", "registration_access_token")),
        )
        return tuple(value for value in values if isinstance(value, str) and value)

    def dump(self) -> bytes:
        """As it is kept."""
        names = ("server", "url", "bound", "obtained_at", "expires_at", "tokens", "client", "resource", "authorization")
        body = {name: getattr(self, name) for name in names}
        return json.dumps({"schema": _SCHEMA, **body}, indent=1).encode() + b"\n"

    @classmethod
    def parse(cls, data: bytes | str) -> Login:
        """What was kept.

        Raises:
            ValueError: It is no login; says nothing of what stands there.
        """
        try:
            found: Any = json.loads(data)
            if found["schema"] != _SCHEMA or not isinstance(found["tokens"]["access_token"], str):
                raise ValueError
            tables = {name: found.get(name) for name in ("client", "resource", "authorization")}
            expires_at = found.get("expires_at")
            return cls(
                server=str(found["server"]),
                url=str(found["url"]),
                bound=str(found["bound"]),
                tokens=cast("dict[str, Any]", dict(found["tokens"])),
                obtained_at=float(found["obtained_at"]),
                expires_at=None if expires_at is None else float(expires_at),
                **{name: None if table is None else dict(table) for name, table in tables.items()},
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            raise ValueError("it is no login") from None


class LoginKeeper(Protocol):
    """Keeps the login at one server. Every method may block."""

    @property
    def where(self) -> str:
        """Where, for people."""
        ...

    def mark(self) -> Hashable:
        """Differs once another login stands there, as far as that can be seen without reading it."""
        ...

    def read(self) -> Login | None:
        """The login; None where there is none for this address.

        Raises:
            StoreError: It can't be read, or others could.
        """
        ...

    def write(self, login: Login) -> None:
        """Keep this one in place of what is there.

        Raises:
            StoreError: It can't be kept.
        """
        ...

    def remove(self) -> bool:
        """Forget it; gives whether there was one.

        Raises:
            StoreError: It can't be removed.
        """
        ...

    def alone(self) -> AbstractContextManager[None]:
        """Hold the login for oneself among all processes, as a context manager.

        Raises:
            StoreError: Somebody else holds it.
        """
        ...


def default_login_folder() -> Path:
    """Where logins are kept: `logins` in the user's state folder."""
    import platformdirs

    return Path(platformdirs.user_state_dir("hotplug", appauthor=False)) / "logins"


def bound_to(url: str) -> str:
    """What binds a login to an address."""
    return hashlib.sha256(url.encode()).hexdigest()


def keeper_of(server: str, url: str, keep: Keep = "file", folder: Path | None = None) -> LoginKeeper:
    """Who keeps the login at a server.

    Args:
        folder: Default: `default_login_folder()`.

    Raises:
        ConfigError: The keyring is asked for, and its package isn't installed.
    """
    folder = default_login_folder() if folder is None else folder
    # The name is there for who looks into the folder; some file systems don't tell A from a.
    digest = hashlib.sha256(f"{server}\n{url}".encode()).hexdigest()[:12]
    path = folder / f"{server.lower()}-{digest}.json"
    if keep == "keyring":
        return _KeyringLogin(path, server, url)
    return _LoginFile(path, url)


def logins_of(server: str, folder: Path | None = None) -> list[tuple[Path, Login]]:
    """The logins in files at every address that this server had; those that can't be read are left out."""
    found: list[tuple[Path, Login]] = []
    folder = default_login_folder() if folder is None else folder
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if not path.name.startswith(f"{server.lower()}-") or path.suffix != ".json":
            continue
        try:
            login = Login.parse(path.read_bytes())
        except (OSError, ValueError):
            continue
        if login.server == server:
            found.append((path, login))
    return found


class _Alone:
    """The lock of one login, whatever it is kept in."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def alone(self) -> Generator[None]:
        """See `LoginKeeper`."""
        path = self.path
        with as_file_errors(path, "written"):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Not around the block: an error in there is no error of this file.
        lock = locked(path.with_name(f".{path.name}-lock"), patience=_PATIENCE)
        with as_file_errors(path, "written"):
            held = lock.__enter__()
        try:
            if not held:
                raise StoreError(f"{path}: another process is renewing this login", hint="try again")
            yield
        finally:
            lock.__exit__(None, None, None)


class _LoginFile(_Alone):
    def __init__(self, path: Path, url: str) -> None:
        super().__init__(path)
        self._bound = bound_to(url)

    @property
    def where(self) -> str:
        return str(self.path)

    def mark(self) -> Hashable:
        try:
            one = self.path.stat()
        except OSError:
            return _ABSENT
        return (one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns)

    def read(self) -> Login | None:
        with as_file_errors(self.path, "read"):
            content = read_content(self.path)
        if content is None:
            return None
        mode = stat.S_IMODE(content.status.st_mode)
        if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise StoreError(
                f"{self.path} is open to other users (mode {mode:04o})",
                hint=f"chmod 600 {self.path}, and log in again where others may have read it",
            )
        return _usable(content.data, self._bound, self.where)

    def write(self, login: Login) -> None:
        path = self.path
        with as_file_errors(path, "written"):
            remove_leftovers(path.parent, path.name)
            with staged(path, login.dump(), like=None) as temporary:
                temporary.replace(path)
                sync_folder(path.parent)

    def remove(self) -> bool:
        with as_file_errors(self.path, "removed"):
            try:
                self.path.unlink()
            except FileNotFoundError:
                return False
            sync_folder(self.path.parent)
            return True


class _KeyringLogin(_Alone):
    """In the system's keyring, through the optional package `keyring`; the lock is a file all the same."""

    def __init__(self, path: Path, server: str, url: str) -> None:
        super().__init__(path)
        self._user = path.stem
        self._bound = bound_to(url)
        try:
            import keyring  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise ConfigError(
                f"{server}: its login is to be kept in the keyring, and the package keyring is not installed",
                hint="pip install 'hotplug[keyring]'",
            ) from None
        self._ring = cast("Any", keyring)

    @property
    def where(self) -> str:
        return f"the keyring, as {self._user!r} of {_SERVICE!r}"

    def mark(self) -> Hashable:
        return _SERVICE

    def read(self) -> Login | None:
        text = self._asked("read", lambda: self._ring.get_password(_SERVICE, self._user))
        return None if not text else _usable(text, self._bound, self.where)

    def write(self, login: Login) -> None:
        self._asked("written", lambda: self._ring.set_password(_SERVICE, self._user, login.dump().decode()))

    def remove(self) -> bool:
        if not self._asked("read", lambda: self._ring.get_password(_SERVICE, self._user)):
            return False
        self._asked("removed", lambda: self._ring.delete_password(_SERVICE, self._user))
        return True

    def _asked(self, doing: str, work: Any) -> Any:
        try:
            return work()
        except Exception as error:  # its backends raise what they like
            raise StoreError(f"a login in {self.where} can't be {doing}: {type(error).__name__}") from None


def _usable(data: bytes | str, bound: str, where: str) -> Login | None:
    try:
        login = Login.parse(data)
    except ValueError:
        raise StoreError(f"{where} holds no login that can be read", hint="log in again") from None
    return login if login.bound == bound else None
