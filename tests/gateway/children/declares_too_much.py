"""Declares resources and prompts, and doesn't know their methods."""

import sys

from wire import Server

Server(eras=sys.argv[2], resources={}, prompts={}).run()
