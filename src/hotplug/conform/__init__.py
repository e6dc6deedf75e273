"""Conformance and journeys: the same play on several backends. Emits events, knows no renderer."""
