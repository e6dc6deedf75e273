"""Measures Hotplug against what people would use instead; `python -m benchmarks`, see docs/benchmarks.md."""
