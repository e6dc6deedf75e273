"""A native calendar as a child over stdio: `native_server.py sqlite|folder FOLDER`; says its number on standard error.

The folder's records stand in a file beside it, as in `native.opened`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1] / "src"), str(HERE)]

from native import path_of, store_of  # noqa: E402

from hotplug.serve import run  # noqa: E402
from hotplug.servers import native  # noqa: E402

kind, folder = sys.argv[1], Path(sys.argv[2])
kept = store_of(kind, folder)
calendar, own, identity = native("sqlite" if kind == "sqlite" else "folder", path_of(kind, folder), store=kept)
print(f"process {os.getpid()}", file=sys.stderr, flush=True)
run(calendar, store=kept or own, identity=identity)
