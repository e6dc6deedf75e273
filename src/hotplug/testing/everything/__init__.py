"""A server that has what the official conformance suite asks a server for: every method, in both eras.

It is the upstream that the gateway is compared at. Straight at it, the suite of `hotplug.testing.suite` passes all of
its checks. Names and texts of tools, prompts and resources that start with `test` are the suite's own demands.

Start it with `python -m hotplug.testing.everything` on standard streams, or with `--http PORT` at a URL that it prints.
"""

from hotplug.testing.everything.server import everything_app, everything_server

__all__ = ["everything_app", "everything_server"]
