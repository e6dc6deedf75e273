"""`hotplug thread`: the gateway's threads, as their owner opens and closes them."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from hotplug.cli.command import command, group
from hotplug.cli.config_option import ConfigOption
from hotplug.cli.failure import Exit, report
from hotplug.cli.gateway_store import StoreUrl, open_existing, open_or_make
from hotplug.cli.output import Output
from hotplug.cli.printing import block
from hotplug.errors import AuthError, ConfigError

if TYPE_CHECKING:
    from hotplug.gateway.threads import ThreadRecord, Threads
    from hotplug.store import SqliteStore

app = group("Threads: each has an address and a token of its own, and gets what the access settings give it.")

T = TypeVar("T")

_NO_SUCH: Final = "no open thread has that id and that token"

Id = Annotated[str, typer.Argument(help="The thread's id.", metavar="THREAD", show_default=False)]
Title = Annotated[str | None, typer.Option("--title", help="What it is about, for people.", show_default=False)]


@command(app, "open")
def open_(
    out: Output,
    project: Annotated[
        str | None, typer.Option("--project", help="Its project, for the access settings.", show_default=False)
    ] = None,
    title: Title = None,
    store: StoreUrl = None,
    config: ConfigOption = None,
) -> int:
    """Open a root thread. Its token is the only thing on stdout, and can't be shown again.

    Exit codes: 0 it is open, 1 refused, 2 it can't be done as it stands.
    """
    return _opened(out, open_or_make(out, store, config), lambda threads: threads.open(project=project, title=title))


@command(app, "fork")
def fork(
    out: Output,
    parent: Annotated[str, typer.Argument(help="The id of the thread above it.", show_default=False)],
    delegated: Annotated[
        bool, typer.Option("--delegated", help="It is a sub-agent: its parent gave it a job.")
    ] = False,
    title: Title = None,
    store: StoreUrl = None,
    config: ConfigOption = None,
) -> int:
    """Open a thread below another one, in its project. The parent's token is taken from HOTPLUG_THREAD_TOKEN.

    Its own token is the only thing on stdout, and can't be shown again.

    Exit codes: 0 it is open, 1 refused, 2 it can't be done as it stands, 3 that isn't the parent's token.
    """
    from hotplug.gateway.tokens import TOKEN_VARIABLE

    token = os.environ.get(TOKEN_VARIABLE)
    if not token:
        raise ConfigError(
            "the parent's token isn't there", hint=f"put it into {TOKEN_VARIABLE}: arguments can be read by others"
        )

    async def opening(threads: Threads) -> tuple[ThreadRecord, str]:
        if not threads.authenticate(parent, token):
            raise AuthError(_NO_SUCH)
        return await threads.open(parent=parent, delegated=delegated, title=title)

    known = open_existing(out, store, config)
    if known is None:
        raise AuthError(_NO_SUCH)
    return _opened(out, known, opening)


def _opened(out: Output, store: SqliteStore, act: Callable[[Threads], Awaitable[tuple[ThreadRecord, str]]]) -> int:
    from hotplug.gateway.threads import ThreadRefused, thread_document

    try:
        thread, token = _with(store, act)
    except ThreadRefused as error:
        report("refused", error.message, hint=error.hint, form=out.format, more={"why": error.why})
        return Exit.NO
    out.answer(
        "hotplug.thread-open/1",
        {"thread": thread_document(thread), "token": token, "path": f"/threads/{thread.id}/mcp"},
        lambda: token,
    )
    out.note(f"thread {thread.id} is open, at /threads/{thread.id}/mcp; the token is not shown again")
    return Exit.YES


@command(app, "close")
def close(out: Output, thread: Id, store: StoreUrl = None, config: ConfigOption = None) -> int:
    """Close a thread and all below it: their tokens are good for nothing from the next call on.

    Access profiles that were picked for them go from the settings.

    Exit codes: 0 closed, 1 no such thread was open, 2 it can't be done as it stands.
    """
    found = open_existing(out, store, config)
    closed = () if found is None else _with(found, lambda threads: threads.close(thread))
    if not closed:
        report("not_found", f"no thread {thread} is open", hint="`hotplug thread list` shows those", form=out.format)
        return Exit.NO
    try:
        _forget_picks(config, closed)
    except ConfigError as error:
        # They are closed all the same.
        out.note(f"warning: what was picked for closed threads stays in the settings: {error}")
    below = f", and {len(closed) - 1} below it" if len(closed) > 1 else ""
    out.answer("hotplug.thread-close/1", {"closed": list(closed)}, lambda: f"thread {thread} is closed{below}")
    return Exit.YES


def _forget_picks(config: Path | None, closed: Sequence[str]) -> None:
    from hotplug.gateway.threads import forget_picks
    from hotplug.gateway.trust import load_config
    from hotplug.store.settings import SettingsFile, default_settings_path

    forget_picks(SettingsFile(load_config(config).settings or default_settings_path()), closed)


@command(app, "list")
def list_(
    out: Output,
    closed: Annotated[
        int, typer.Option("--closed", help="List so many of those that were closed last too.", min=0)
    ] = 0,
    store: StoreUrl = None,
    config: ConfigOption = None,
) -> None:
    """List the open threads, each below its parent."""
    from hotplug.gateway.threads import thread_document

    async def looking(threads: Threads) -> tuple[ThreadRecord, ...]:
        return threads.list(closed=closed)

    found = open_existing(out, store, config)
    known = () if found is None else _with(found, looking)
    rows = [thread_document(one) for one in known]
    out.answer(
        "hotplug.thread-list/1",
        {"threads": rows},
        lambda: block(_tree(known)) or "no thread is open",
        rows=("hotplug.thread-list.thread/1", rows),
    )


@command(app, "show")
def show(out: Output, thread: Id, store: StoreUrl = None, config: ConfigOption = None) -> int:
    """Show a thread, open or closed, with those above and right below it.

    Exit codes: 0 shown, 1 there is none, 2 it can't be looked at.
    """
    from hotplug.gateway.threads import thread_document
    from hotplug.gateway.tokens import OWNER

    async def looking(threads: Threads) -> tuple[ThreadRecord | None, list[ThreadRecord], Sequence[ThreadRecord]]:
        found = threads.get(thread)
        above: list[ThreadRecord] = []
        at = found
        while at is not None and at.parent is not None and len(above) <= at.depth:
            at = threads.get(at.parent)
            above += [] if at is None else [at]
        return found, above, threads.children(thread)

    store_ = open_existing(out, store, config)
    found, above, below = (None, [], ()) if store_ is None else _with(store_, looking)
    if found is None:
        report("not_found", f"there is no thread {thread}", hint="`hotplug thread list` shows those", form=out.format)
        return Exit.NO
    document: dict[str, Any] = {
        "thread": thread_document(found),
        "above": [one.id for one in above],
        "below": [one.id for one in below],
    }
    lines = [_line(found)]
    # The owner's own has no token, so it has no address either.
    lines += [f"path    /threads/{found.id}/mcp"] if found.id != OWNER else []
    lines += [f"above   {_line(one)}" for one in above] + [f"below   {_line(one)}" for one in below]
    out.answer("hotplug.thread-show/1", document, lambda: block(lines))
    return Exit.YES


@command(app, "opener")
def opener(
    out: Output,
    name: Annotated[str, typer.Argument(help="What the host is called: editor.", show_default=False)],
) -> None:
    """Make a token for a host that opens root threads over HTTP.

    The token is the only thing on stdout, and can't be shown again; nothing is written: what is said beside it goes
    into hotplug.toml.
    """
    from hotplug.gateway.tokens import new_opener_token, token_hash

    if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
        raise ConfigError(f"{name!r} can't be an opener's name", hint="letters, digits, - and _")
    token = new_opener_token()
    digest = token_hash(token).hex()
    out.answer("hotplug.thread-opener/1", {"name": name, "token": token, "sha256": digest}, lambda: token)
    out.note(f'put into hotplug.toml:\n\n[threads.openers]\n{name} = "{digest}"\n\nthe token is not shown again')


def _with(store: SqliteStore, act: Callable[[Threads], Awaitable[T]]) -> T:
    import anyio

    async def acting() -> T:
        from hotplug.gateway.threads import Threads

        async with store, Threads.over(store) as threads:
            return await act(threads)

    return anyio.run(acting)


def _tree(threads: Sequence[ThreadRecord]) -> list[str]:
    below: dict[str | None, list[ThreadRecord]] = {}
    known = {one.id for one in threads if one.closed is None}
    for one in threads:
        below.setdefault(one.parent if one.parent in known and one.closed is None else None, []).append(one)
    lines: list[str] = []
    waiting = [(one, 0) for one in reversed(below.get(None, []))]
    while waiting:
        one, depth = waiting.pop()
        lines.append("  " * depth + _line(one))
        waiting += [(child, depth + 1) for child in reversed(below.get(one.id, []))] if one.id in known else []
    return lines


def _line(thread: ThreadRecord) -> str:
    from hotplug.gateway.threads import thread_document

    shown = thread_document(thread)
    parts = [thread.id, str(shown["opened"])]
    parts += ["sub-agent"] if thread.delegated else []
    parts += [f"project {thread.project}"] if thread.project is not None else []
    parts += [f"closed {shown['closed']}"] if thread.closed is not None else []
    parts += [thread.title] if thread.title is not None else []
    return "  ".join(parts)
