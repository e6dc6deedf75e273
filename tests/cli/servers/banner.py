"""No MCP server: it greets on standard output and waits; with `flood` it never stops greeting."""

import sys
import time

print("Welcome to banner 1.0!", flush=True)
while "flood" in sys.argv:
    print("Welcome to banner 1.0!", flush=True)
    time.sleep(0.0001)
sys.stdin.read()
