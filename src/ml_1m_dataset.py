"""NCFTestDataset under the name its description imports it by; it lives in recsys.cf.evaluation."""

from recsys.cf.evaluation.ncf_evaluator import NCFTestDataset

__all__ = ["NCFTestDataset"]
