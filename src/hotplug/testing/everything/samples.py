"""The smallest valid picture and sound, in base64 as the wire has them."""

from __future__ import annotations

from typing import Final

__all__ = ["PNG", "WAV"]

PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
"""One pixel."""

WAV: Final = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
"""One silent sample, 8 kHz mono."""
