"""Starts a process in its group that ignores SIGTERM, as itself does; `pids` gives both."""

import json
import os
import signal
import subprocess
import sys

from wire import Refusal, old_server, serve, text

signal.signal(signal.SIGTERM, signal.SIG_IGN)
script = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
assert child.stdout is not None
child.stdout.readline()


def unknown(method: str) -> object:
    raise Refusal(-32601)


answer = old_server(unknown)


def showing(method: str, params: dict) -> object:
    return text(json.dumps([os.getpid(), child.pid])) if method == "tools/call" else answer(method, params)


serve(showing)
