"""What the evaluators of document 000 share: one test set read, ranked and measured, by one or by several."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from recsys.cf.evaluation.translation import (
    K_VALUES,
    Results,
    cutoffs,
    document_words,
    read_test_set,
    standard_names,
)
from recsys.errors import InputError
from recsys.evaluation.evaluate import evaluate
from recsys.ranks.sources import Factors, Scores
from recsys.records.arrays import Interactions


class StandardEvaluator(ABC):
    """What ModelEvaluator and the baselines share: read a test set, rank, measure; and the last results."""

    _id_advice: ClassVar[str] = "Map ids to row numbers first; recsys.baselines takes ids."
    num_items: int
    _last_results: Results | None = None

    @abstractmethod
    def _lists_or_source(
        self, truth: Interactions, history: Interactions | None, k: int
    ) -> Factors | Scores | Mapping[Any, Any]:
        """What `recsys.evaluate` measures: the lists of the test users, or what ranks all items."""

    def get_per_user_metrics(self) -> Any:
        """A DataFrame by user id, one column per metric, evaluated users only."""
        if self._last_results is None:
            raise InputError(
                "nothing has been evaluated yet.", hint="Call evaluate(test_data, user_pos_train) first."
            )
        return self._last_results.per_user()

    def _evaluate_test_set(
        self, test_data: Any, user_pos_train: Any, k_values: Sequence[int], **columns: Any
    ) -> Results:
        """The results of document 000 from one call of `recsys.evaluate`.

        Coverage is that of the longest lists. The MRR of {user: items} is over the lists as they are.
        """
        start = time.perf_counter()
        truth, history = read_test_set(test_data, user_pos_train, **columns)
        names, coverage = standard_names(k_values), f"coverage@{max(k_values)}"
        with document_words(self._id_advice):
            ranked = self._lists_or_source(truth, history, max(k_values))
            size = self.num_items if isinstance(ranked, Mapping) else None
            evaluation = evaluate(ranked, truth, [*names, coverage], seen=history, catalogue=size)
        results = Results.of({name: evaluation[name] for name in names}, evaluation)
        covered = evaluation[coverage]
        results["coverage"] = 0.0 if math.isnan(covered) else covered  # no list holds an item
        n_evaluated = min(evaluation.n_cases[name] for name in names)
        results["num_users_evaluated"] = n_evaluated
        results["num_users_skipped"] = len(evaluation.per_case) - n_evaluated
        results["evaluation_time_seconds"] = time.perf_counter() - start
        self._last_results = results
        return results


class SeveralEvaluators:
    """Several evaluators on one test set, which is read once."""

    kind: ClassVar[str]
    _adder: ClassVar[str]

    def __init__(self, k_values: Sequence[int] = K_VALUES) -> None:
        self.k_values = cutoffs(k_values)
        self.results: dict[str, Results] = {}
        self._evaluate: dict[str, Callable[..., Results]] = {}
        self._hyperparams: dict[str, Mapping[str, Any]] = {}

    def evaluate_all(self, test_data: Any, user_pos_train: Any = None, **columns: str) -> dict[str, Results]:
        """{name: results} of all, one after the other; `user_col` and `item_col` name the columns."""
        if not self._evaluate:
            raise InputError(f"no {self.kind} was added.", hint=f"Call {self._adder} first.")
        test_set = read_test_set(test_data, user_pos_train, **columns)
        self.results = {name: call(*test_set) for name, call in self._evaluate.items()}
        return dict(self.results)

    def get_comparison_table(self) -> Any:
        """A DataFrame with one row for each: its hyperparameters, then its results."""
        from recsys.cf.evaluation.wide_table import WideTable

        rows = [{self.kind: name, **self._hyperparams[name], **row} for name, row in self.results.items()]
        hyperparams = dict.fromkeys(key for name in self.results for key in self._hyperparams[name])
        columns = dict.fromkeys([self.kind, *hyperparams, *(key for row in rows for key in row)])
        return WideTable(rows, columns=list(columns))
