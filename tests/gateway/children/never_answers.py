"""Reads nothing and says nothing."""

import time

from wire import Server

Server()
time.sleep(600)
