"""The module document 002 imports NCFEvaluator from; the class is in recsys.cf.evaluation."""

from recsys.cf.evaluation.ncf_evaluator import NCFEvaluator

__all__ = ["NCFEvaluator"]
