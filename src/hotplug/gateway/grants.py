"""The one decision point: what a thread may use, asked anew for each request.

Every road asks here: lists, calls, prompts, resources, completions, events, search. What can't be decided is not given.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from hotplug.access import Access, Host, Lineage, Refused, Settings, resolve
from hotplug.access import Profile as AccessProfile

__all__ = ["Grants", "HasLineage", "ReadsSettings"]

_KEPT: Final = 20_000
_logger = logging.getLogger(__name__)


class ReadsSettings(Protocol):
    """Gives the access settings as they are now; the same object while nothing changed."""

    def read(self) -> Settings: ...


class HasLineage(Protocol):
    """Knows the threads."""

    @property
    def version(self) -> int:
        """Changes when the lineage does."""
        ...

    def lineage(self) -> Lineage: ...


class Grants:
    """Decides, for threads, servers and tools.

    Args:
        settings: The owner's.
        threads: The lineage.
        narrowing: What trusted files of a project give at most, each with where it stands; the same object while
            nothing changed.
    """

    def __init__(
        self,
        settings: ReadsSettings,
        threads: HasLineage,
        narrowing: Callable[[], Sequence[tuple[AccessProfile, str]]] = tuple,
    ) -> None:
        self._settings = settings
        self._threads = threads
        self._narrowing = narrowing
        self._offered: dict[str, frozenset[str]] = {}
        self._host = Host()
        self._undecided: str | None = None
        self._stamp: tuple[object, ...] = ()
        self._decided: dict[str, Access | Refused] = {}
        self._lineage: Lineage = {}
        self.version = 0
        """Changes when anything may be decided differently."""

    def offers(self, server: str, tools: Iterable[str] | None) -> bool:
        """Tell what a server offers (tools and parts of profiles); None takes the server away. Whether that is new.

        Two threads' children of one server may offer different tools, so no decision hangs on which they are.
        """
        found = None if tools is None else frozenset(tools)
        before = self._offered.get(server)
        if found == before:
            return False
        if found is None:
            del self._offered[server]
        else:
            self._offered[server] = found
        if found is None or before is None:
            self._host = Host(servers=dict.fromkeys(self._offered, ()))
        return True

    def offered(self, server: str) -> frozenset[str]:
        """The tools and parts of profiles that a server told last."""
        return self._offered.get(server, frozenset())

    @property
    def host(self) -> Host:
        """All that there is, as each server told last, for explanations."""
        return Host(servers={name: sorted(known) for name, known in self._offered.items()})

    def access(self, thread: str) -> Access | Refused:
        """What a thread gets now; what can't be decided, for whatever reason, is nothing."""
        try:
            found = self._decide(thread)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            if said != self._undecided:
                _logger.error("nobody gets anything: what threads get can't be decided (%s)", said)
            self._undecided = said
            return Refused(thread, "undecided", f"what it gets can't be decided ({said})", "see the log", None, thread)
        self._undecided = None
        return found

    def _decide(self, thread: str) -> Access | Refused:
        settings = self._settings.read()
        # The settings object itself is kept, not its id: an id can be given to the next object.
        narrowing = self._narrowing()
        stamp = (settings, self._threads.version, self._host, narrowing)
        if len(stamp) != len(self._stamp) or any(
            one is not other and one != other for one, other in zip(stamp, self._stamp, strict=True)
        ):
            self._stamp = stamp
            self._decided = {}
            self._lineage = self._threads.lineage()
            self.version += 1
        found = self._decided.get(thread)
        if found is None:
            if len(self._decided) > _KEPT:
                self._decided = {}
            found = resolve(settings, thread, self._lineage, self._host)
            if isinstance(found, Access):
                for profile, source in narrowing:
                    found = found.narrowed(profile, source)
            self._decided[thread] = found
        return found

    def refresh(self) -> int:
        """Look whether anything changed; the version."""
        self.access("")
        return self.version

    def servers(self, thread: str) -> tuple[str, ...]:
        """The servers of which a thread gets something; in no case one that it gets nothing of."""
        access = self.access(thread)
        return access.servers if isinstance(access, Access) else ()

    def gives_server(self, thread: str, server: str) -> bool:
        """Whether a thread gets anything of a server."""
        access = self.access(thread)
        return isinstance(access, Access) and server in self._offered and not access.rule(server).nothing

    def gives_whole(self, thread: str, server: str) -> bool:
        """Whether a thread gets all of a server, whatever it offers."""
        access = self.access(thread)
        if not isinstance(access, Access) or server not in self._offered:
            return False
        rule = access.rule(server)
        return not isinstance(rule.allow, frozenset) and not rule.deny

    def gives(self, thread: str, server: str, tool: str, *, underlying: Iterable[str] = ()) -> bool:
        """Whether a thread may use a tool, or a part of a profile, of a server.

        Args:
            underlying: The server's own tools that it works through: one that is denied by name closes it too.
        """
        return self._gives(self.access(thread), server, tool, underlying)

    def now(self, thread: str) -> Callable[[str, str, Iterable[str]], bool]:
        """As `gives`, as of this moment for many questions at once: to be asked anew after anything was waited for."""
        access = self.access(thread)
        return lambda server, tool, underlying: self._gives(access, server, tool, underlying)

    def _gives(self, access: Access | Refused, server: str, tool: str, underlying: Iterable[str]) -> bool:
        if not isinstance(access, Access) or server not in self._offered:
            return False
        rule = access.rule(server)
        if not rule.gives(tool):
            return False
        return not any(name in rule.deny for name in underlying)

    def refuses(self, thread: str) -> bool:
        """Whether a thread gets nothing because that is how doubts are decided: it is closed, or names what isn't."""
        return isinstance(self.access(thread), Refused)
