"""What is logged while a command runs: nothing beside a JSON answer, a server's words only where wanted."""

from __future__ import annotations

import logging
import sys

from hotplug.cli.output import Format, Output
from hotplug.cli.printing import cut, printable

__all__ = ["route_logs"]


class _Stderr(logging.Handler):
    def __init__(self, out: Output) -> None:
        super().__init__(logging.WARNING)
        self.out = out

    def emit(self, record: logging.LogRecord) -> None:
        # An error carries a server's last lines itself.
        if self.out.format is not Format.TEXT or (record.name == "hotplug.connect" and not self.out.verbose):
            return
        encoding = sys.stderr.encoding or "utf-8"
        line = printable(cut(record.getMessage(), 400)) + "\n"
        sys.stderr.write(line.encode(encoding, "backslashreplace").decode(encoding))


def route_logs(out: Output) -> None:
    """Send warnings where this command's answers belong; one command's choice replaces that of the one before."""
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler, _Stderr):
            root.removeHandler(handler)
    root.addHandler(_Stderr(out))
