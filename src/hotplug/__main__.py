"""`python -m hotplug`: the same as the `hotplug` command."""

from __future__ import annotations

import sys

from hotplug.cli import main

if __name__ == "__main__":
    sys.exit(main())
