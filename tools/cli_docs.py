"""Writes docs/cli.md from what `--help` says of every command, so that the page can't say anything else.

`python tools/cli_docs.py` writes it; with `--check` it only says, by its exit code, whether it is current.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "cli.md"
_WIDTH = "100"
_HEAD = """\
# The command line

What `--help` says, command by command. Written by `tools/cli_docs.py`; a test holds it to the code.

Targets are written in one way everywhere: a URL; a command after `--`, or as one word with blanks;
`npm:package[@version]` and `pypi:package[==version]`; `server.py`, `server.py:object` or `module:object`; a server's
name in `hotplug.toml`; `file.json#name`; and the native servers `sqlite:///FILE` and `folder:DIR`. Those answer
invitations if you say to whose address they go: `'sqlite:///my.db?me=me@example.org'`, `'folder:DIR?me=me@example.org'`
(in quotes, for the shell). Every command takes `--json`. An answer as JSON has a `schema`, which lies in `schemas/`; an
error is one JSON object on stderr.
"""


def page() -> str:
    """The whole page."""
    sys.path.insert(0, str(ROOT / "src"))
    from hotplug.cli.commands import COMMANDS

    parts = [_HEAD, _section(2, [])]
    for name, entry in COMMANDS.items():
        app = import_module(entry.module).app
        verbs = [str(one.name) for one in app.registered_commands]
        parts.append(_section(2, [name]))
        if verbs != [name]:
            parts += _verbs([name], app)
    return "\n".join(parts)


def _verbs(words: list[str], app: Any) -> Iterator[str]:
    """The verbs of a noun, then the nouns in it with theirs."""
    for one in app.registered_commands:
        yield _section(3, [*words, str(one.name)])
    for group in app.registered_groups:
        yield _section(3, [*words, str(group.name)])
        yield from _verbs([*words, str(group.name)], group.typer_instance)


def _section(level: int, words: list[str]) -> str:
    from hotplug.cli import main

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main([*words, "--help"])
    if code != 0:
        raise SystemExit(f"hotplug {' '.join(words)} --help ended with {code}")
    text = "\n".join(line.rstrip() for line in out.getvalue().strip().splitlines())
    return f"{'#' * level} `{' '.join(['hotplug', *words])}`\n\n```text\n{text}\n```\n"


def run(arguments: list[str]) -> int:
    os.environ["COLUMNS"] = _WIDTH
    text = page()
    if "--check" in arguments:
        return 0 if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text else 1
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
