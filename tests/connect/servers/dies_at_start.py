"""Writes what a failing start writes, a secret among it."""

import os
import sys

print("\x1b[1mTraceback\x1b[0m", file=sys.stderr)
print(
    f"ConfigError: bad password {os.environ.get('PASSWORD')!r}, token {os.environ.get('SOME_TOKEN')}", file=sys.stderr
)
sys.exit(3)
