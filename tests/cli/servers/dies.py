"""A server that ends before it says anything."""

import sys

print("no such account", file=sys.stderr)
sys.exit(7)
