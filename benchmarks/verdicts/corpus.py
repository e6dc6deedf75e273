"""All cases."""

from __future__ import annotations

from typing import Final

from benchmarks.verdicts.calendar_cases import CALENDAR_CASES
from benchmarks.verdicts.case import Case
from benchmarks.verdicts.exports import EXPORT_CASES
from benchmarks.verdicts.shop_cases import SHOP_CASES

__all__ = ["CASES"]

CASES: Final[tuple[Case, ...]] = (*SHOP_CASES, *CALENDAR_CASES, *EXPORT_CASES)
