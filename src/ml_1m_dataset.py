"""The module document 002 imports NCFTestDataset from; the class is in recsys.cf.evaluation."""

from recsys.cf.evaluation.ncf_evaluator import NCFTestDataset

__all__ = ["NCFTestDataset"]
