"""What is wrong with a split, or with the lists evaluated on it."""

from __future__ import annotations

from recsys.audits.check_registry import CHECKS, Check
from recsys.audits.findings import SEVERITIES, Audit, Finding
from recsys.audits.split_audit import audit

__all__ = ["CHECKS", "SEVERITIES", "Audit", "Check", "Finding", "audit"]


def __dir__() -> list[str]:
    return __all__
