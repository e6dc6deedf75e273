"""What ships to be played: journeys."""

from pathlib import Path
from typing import Final

__all__ = ["CALENDAR_DAY"]

CALENDAR_DAY: Final = Path(__file__).parent / "calendar-day.yaml"
"""A day with a calendar: the journey of `hotplug demo`."""
