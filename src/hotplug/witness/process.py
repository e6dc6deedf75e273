"""A process as a witness: with what code it ended, or what ended it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, Self

import anyio

from hotplug.errors import ConfigError
from hotplug.evidence.channels import ChannelDescriptor
from hotplug.evidence.coverage import BlindSpot
from hotplug.evidence.vocabulary import CloseCondition, ProvenanceClass
from hotplug.profile.summaries import exit_summary, termination_summary
from hotplug.witness.watching import CannotLook, Session, Watching, now

__all__ = ["ProcessWitness"]

_STOP_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.02


class _Waitable(Protocol):
    """A process of anyio or asyncio."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    async def wait(self) -> int: ...


class _End(NamedTuple):
    """How it ended: a code, or minus a signal's number as `subprocess` writes it."""

    code: int


class ProcessWitness(Watching):
    """How a process ends: `exit 1` where it ended by itself, `SIGKILL` where a signal ended it.

    `x-exit` is actuation-derived and only of presence: a program says of itself how it went. `x-termination` is
    independent and of consequence: the system says that something outside ended it. How a process ended is told to its
    parent alone; of another's process, the end is seen and its manner is a blind spot.

    Args:
        process: A process of `subprocess`, `asyncio` or anyio, or a process id. `ProcessWitness.run` starts one.
        waits: A close waits for the end, as long as the window's budget allows.

    Raises:
        ConfigError: There is no process of that id.
    """

    closes: CloseCondition = "exit"

    def __init__(
        self,
        process: int | subprocess.Popen[Any] | Any,
        *,
        waits: bool = False,
        name: str = "process",
        describe: str | None = None,
        timeout: float = 10.0,
    ) -> None:
        pid = process if isinstance(process, int) else getattr(process, "pid", None)
        if not isinstance(pid, int) or isinstance(process, bool) or pid < 1:
            raise ConfigError(f"{type(process).__name__} is no process", hint="give a process, or its id")
        self._process: int | subprocess.Popen[Any] | _Waitable = process
        self.pid = pid
        super().__init__(name, describe or f"process {self.pid}", timeout=timeout)
        self._waits = waits
        self._end: _End | None = None
        self._lost: str | None = None
        self._owned: Any = None
        # A handle of the process itself: its id may be given to another one later.
        self._handle: int | None = None
        if hasattr(os, "pidfd_open"):
            try:
                self._handle = os.pidfd_open(self.pid)
            except ProcessLookupError:
                if isinstance(process, int):
                    raise ConfigError(f"there is no process {self.pid}") from None
            except OSError:
                self._handle = None
        if self._handle is None and isinstance(process, int) and not _is_there(self.pid):
            raise ConfigError(f"there is no process {self.pid}")

    @classmethod
    async def run(
        cls,
        command: Sequence[str],
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        waits: bool = True,
        name: str = "process",
    ) -> Self:
        """Start a program, without input and output, and watch it; `aclose` ends it.

        Raises:
            ConfigError: It can't be started.
        """
        try:
            process = await anyio.open_process(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=cwd,
                env=env,
            )
        except OSError as error:
            raise ConfigError(f"{command[0]!r} can't be started: {error.strerror or error}") from None
        made = cls(process, waits=waits, name=name, describe=f"process {process.pid} ({Path(command[0]).name})")
        made._owned = process
        return made

    def _instance(self) -> str:
        return f"{super()._instance()}-{self.pid}"

    def channels(self) -> tuple[ChannelDescriptor, ...]:
        """`x-exit` and `x-termination`."""
        return (
            ChannelDescriptor(id="x-exit", independence="actuation-derived", grade="presence"),
            ChannelDescriptor(id="x-termination", independence="independent", grade="consequence"),
        )

    def provenance(self, channel: str) -> tuple[str, str, ProvenanceClass]:
        """The system; the status that it gives to the parent."""
        del channel
        return self.locator, "the status of the process, as the system gives it", "authoritative"

    async def aclose(self) -> None:
        """Let go of the process; end it where it was started here."""
        await super().aclose()
        if self._owned is not None:
            with anyio.CancelScope(shield=True):
                if self._owned.returncode is None:
                    with suppress(ProcessLookupError):
                        self._owned.terminate()
                with anyio.move_on_after(_STOP_SECONDS):
                    await self._owned.wait()
                if self._owned.returncode is None:
                    self._owned.kill()
                await self._owned.wait()
                await self._owned.aclose()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    async def _begin(self, session: Session) -> None:
        await self._ask()
        session.state = self._end is None and self._lost is None

    async def _look(self, session: Session) -> Sequence[BlindSpot]:
        was_running: bool = bool(session.state)
        await self._ask()
        if self._lost is not None and was_running:
            raise CannotLook(self._lost, remedy="give the process itself, or let its parent watch")
        if self._end is not None and was_running and not session.seen:
            code = self._end.code
            if code >= 0:
                value = {"pid": self.pid, "code": code}
                session.seen.append(session.observation("x-exit", exit_summary(code), value))
            else:
                summary = termination_summary(_signal_name(-code))
                value = {"pid": self.pid, "signal": summary}
                session.seen.append(session.observation("x-termination", summary, value))
        return ()

    async def _settle(self, session: Session) -> bool:
        if not self._waits:
            return True
        left = (session.window.opened_at + session.window.budget_ms - now()) / 1000
        with anyio.move_on_after(max(left, 0)):
            while True:
                await self._ask()
                if self._end is not None or self._lost is not None:
                    return True
                await anyio.sleep(_POLL_SECONDS)
        return False

    def _closed_by(self, session: Session) -> CloseCondition:
        # In both other cases the system was asked and answered: it runs on, or it was ended from outside. That a
        # signal ended the process takes nothing from what was seen of it.
        return "exit" if session.seen and session.seen[0].channel == "x-exit" else "ack"

    async def _ask(self) -> None:
        """Ask the system how it is."""
        if self._end is not None or self._lost is not None:
            return
        process = self._process
        code: int | None
        if isinstance(process, subprocess.Popen):
            code = process.poll()
        elif isinstance(process, int):
            code = self._ask_by_id()
        else:
            code = process.returncode
            if code is None and self._has_ended():
                code = await process.wait()  # it has ended, and only the event loop doesn't know yet
        if code is not None:
            self._end = _End(code)

    def _ask_by_id(self) -> int | None:
        if self._handle is not None and hasattr(os, "P_PIDFD"):
            try:
                # WNOWAIT leaves the status for the one who waits for it.
                found = os.waitid(os.P_PIDFD, self._handle, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                pass
            else:
                if found is None:
                    return None
                return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
        if self._has_ended():
            self._lost = "it ended, and how is told to its parent alone"
        return None

    def _has_ended(self) -> bool:
        if self._handle is None:
            return not _is_there(self.pid)
        poll = select.poll()
        poll.register(self._handle, select.POLLIN)
        return bool(poll.poll(0))


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _signal_name(number: int) -> str | int:
    try:
        return signal.Signals(number).name
    except ValueError:
        return number
