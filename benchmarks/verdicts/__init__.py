"""Verdicts over planted defects: does Hotplug say what really happened? `make bench-verdicts`, docs/verdicts.md."""
