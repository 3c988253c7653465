"""What is wrong with a split, or with the lists evaluated on it."""

from __future__ import annotations

from recsys.audit.check_registry import CHECKS, Check
from recsys.audit.findings import SEVERITIES, Audit, Finding
from recsys.audit.split_audit import audit

__all__ = ["CHECKS", "SEVERITIES", "Audit", "Check", "Finding", "audit"]


def __dir__() -> list[str]:
    return __all__
