"""Verdicts over planted defects: does Hotplug say what really happened; `python -m benchmarks.verdicts`, docs/verdicts.md."""
