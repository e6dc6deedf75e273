"""What the official suite passes: straight at our upstream for it, and at the same upstream behind the gateway.

`make conformance-gateway` runs it. The exit status is 1 where a figure isn't the one that has to be reached.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hotplug.errors import HotplugError
from hotplug.testing.program import started
from hotplug.testing.suite import LEGACY, MODERN, SuiteResult, run_suite, suite_version

UPSTREAM: Final = (sys.executable, "-m", "hotplug.testing.everything")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the suite is sent, and with which headers."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


@contextmanager
def gateway(server: str) -> Generator[Endpoint]:
    """A thread of the gateway in front of one server, given as the body of its entry in `hotplug.toml`.

    Nothing of the user's own is read or written: settings, state and store are in a folder that goes with the block.
    The suite can send no token: what is in `headers` is added by a front.
    """
    with tempfile.TemporaryDirectory(prefix="hotplug-conformance-") as folder:
        store = f"sqlite:///{folder}/store.sqlite3"
        settings = Path(folder) / "hotplug.toml"
        settings.write_text(
            f'[servers.everything]\nprefix = ""\n{server}\n[store]\nurl = {json.dumps(store)}\n', encoding="utf-8"
        )
        env = {**os.environ, "XDG_CONFIG_HOME": folder, "XDG_STATE_HOME": folder, "HOTPLUG_STORE": store}
        hotplug = (sys.executable, "-m", "hotplug")
        with started((*hotplug, "serve", "--config", str(settings), "--http", "0"), env=env) as url:
            told = subprocess.run(
                (*hotplug, "thread", "open", "--json"), env=env, capture_output=True, text=True, timeout=60, check=True
            )
            thread = json.loads(told.stdout)
            yield Endpoint(url + thread["path"], {"authorization": f"Bearer {thread['token']}"})


@contextmanager
def direct() -> Generator[Endpoint]:
    with started((*UPSTREAM, "--http", "0")) as url:
        yield Endpoint(url)


@contextmanager
def before_http() -> Generator[Endpoint]:
    with direct() as upstream, gateway(f"url = {json.dumps(upstream.url)}\n") as endpoint:
        yield endpoint


@contextmanager
def before_stdio() -> Generator[Endpoint]:
    command, *arguments = UPSTREAM
    # A gateway gives its upstreams none of its own variables, so that one that isn't installed is found only by this.
    source = json.dumps(str(Path(__file__).resolve().parents[1] / "src"))
    entry = f"command = {json.dumps(command)}\nargs = {json.dumps(arguments)}\nenv = {{ PYTHONPATH = {source} }}\n"
    with gateway(entry) as endpoint:
        yield endpoint


@dataclass(frozen=True, slots=True)
class Row:
    """One way to the upstream, and what has to pass on it in each era."""

    name: str
    way: Callable[[], AbstractContextManager[Endpoint]]
    wanted: Mapping[str, int]


ROWS: Final = (
    Row("direct", direct, {LEGACY: 84, MODERN: 152}),
    Row("gateway, upstream over HTTP", before_http, {LEGACY: 84, MODERN: 152}),
    # An upstream over stdio has no stream of its own that it could close.
    Row("gateway, upstream over stdio", before_stdio, {LEGACY: 83, MODERN: 152}),
)


def measure(row: Row) -> dict[str, SuiteResult]:
    with row.way() as endpoint:
        return {version: run_suite(endpoint.url, version, headers=endpoint.headers) for version in row.wanted}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the totals there as well")
    parser.add_argument("--only", choices=("direct", "http", "stdio"), help="one way instead of all three")
    options = parser.parse_args()
    rows = ROWS if options.only is None else (ROWS[("direct", "http", "stdio").index(options.only)],)
    good = True
    document: dict[str, dict[str, dict[str, int]]] = {}
    print(f"@modelcontextprotocol/conformance {suite_version()}, --suite all: checks passed, failed, wanted")
    for row in rows:
        print(f"\n{row.name}")
        try:
            found = measure(row)
        except HotplugError as error:
            print(f"  could not be measured: {error}")
            good = False
            continue
        document[row.name] = {
            version: {"passed": result.passed, "failed": result.failed, "wanted": row.wanted[version]}
            for version, result in found.items()
        }
        for version, result in found.items():
            reached = (result.passed, result.failed) == (row.wanted[version], 0)
            good = good and reached
            print(
                f"  {version}  {result.passed:4} passed  {result.failed:3} failed  {row.wanted[version]:4} wanted"
                f"{'' if reached else '   NOT REACHED'}"
            )
            if not reached:
                print("  " + "\n  ".join(result.summary().splitlines()[1:]))
    if options.json is not None:
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
