"""Complains and exits."""

import sys

from wire import Server

Server()
print("no configuration found", file=sys.stderr)
sys.exit(4)
