"""Writes its environment to standard error and exits."""

import os
import sys

for name, value in os.environ.items():
    print(f"{name}={value}", file=sys.stderr)
sys.exit(5)
