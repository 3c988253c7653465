"""Networks by their names, fitted to a history of ids: what `recsys train ncf` does."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from recsys.evaluation.results import Evaluation
from recsys.inputs.files.ncf import NcfTest
from recsys.inputs.timestamps import to_seconds
from recsys.models.callbacks import Fitted, fit
from recsys.models.implicit_feedback import Pairs
from recsys.models.networks import NETWORKS, NeuMF, network
from recsys.models.training import train
from recsys.ranks.sources.candidate_sets import Candidates
from recsys.records.arrays import Ids, Interactions


def fit_network(
    name: str,
    pairs: Pairs,
    *,
    shape: Mapping[str, Any],
    hold_out: bool = True,
    patience: int = 2,
    metric: str = "ndcg@10",
    on_evaluation: Callable[[str, int, Evaluation], object] | None = None,
    progress: Callable[[int, int, str], object] | None = None,
    **training: Any,
) -> Fitted:
    """Fit the network of this name; NeuMF starts from a GMF and an MLP that are fitted first.

    Args:
        name: one of gmf, mlp, neumf, mf and biased_mf.
        pairs: all training pairs, with their order in time if items are held out.
        shape: factors, layers and dropout, of which each network takes its own.
        hold_out: choose the number of epochs on each user's last item; if False, train for all epochs.
        patience, metric: as for `callbacks.fit`.
        on_evaluation: called with (network, epoch, result) after each epoch.
        progress: called with (examples done, examples in all, what is being trained).
        training: other arguments of `recsys.models.train`, the seed among them.
    """

    def fit_part(part: str, make: Callable[[str], Any], options: Mapping[str, Any]) -> Fitted:
        def bar(done: int, total: int) -> None:
            if progress is not None:
                progress(done, total, f"training {part}")

        def watch(epoch: int, result: Evaluation) -> None:
            if on_evaluation is not None:
                on_evaluation(part, epoch, result)

        if not hold_out:
            model = make("final")
            return Fitted(model, model, None, train(model, pairs, progress=bar, **options))
        return fit(
            make, pairs, patience=patience, metric=metric, progress=bar, on_evaluation=watch, **options
        )

    def fit_new(part: str) -> Fitted:
        own = {n: shape[n] for n in inspect.signature(NETWORKS[part]).parameters if n in shape}
        own["seed"] = training["seed"]
        return fit_part(part, lambda _: network(part, pairs.n_users, pairs.n_items, **own), training)

    if name == "neumf":
        parts = [fit_new("gmf"), fit_new("mlp")]
        smaller = training | {"learning_rate": training["learning_rate"] / 6}  # it starts near its end
        attribute = {"tuned": "tuned", "final": "model"}
        fitted = fit_part(
            name, lambda stage: NeuMF.of(*(getattr(part, attribute[stage]) for part in parts)), smaller
        )
    else:
        fitted = fit_new(name)
    fitted.model.user_ids, fitted.model.item_ids = pairs.user_ids, pairs.item_ids
    return fitted


def pairs_and_candidates(history: Interactions, test: NcfTest | None) -> tuple[Pairs, Candidates | None]:
    """Return the training pairs of a history, and the test cases as rows of the same tables."""
    users = np.repeat(history.cases.values, history.sizes)
    items = history.items.values[history.codes]
    order = None if history.times is None else to_seconds(history.times)
    if test is None:
        return Pairs.of_ids(users, items, order=order), None

    def as_in_history(numbers: Any, known: Ids) -> Any:
        return numbers.astype(str).astype(object) if known.kind == "str" else numbers

    test_users = as_in_history(test.users, history.cases)
    positives = as_in_history(test.items, history.items)
    negatives = [as_in_history(row, history.items) for row in test.negatives]
    test_items = np.concatenate([positives, *negatives])
    pairs = Pairs.of_ids(users, items, order=order, more_users=test_users, more_items=test_items)
    rows = [pairs.rows_of(row, "items") for row in negatives]
    return pairs, Candidates.of(pairs.rows_of(test_users, "users"), pairs.rows_of(positives, "items"), rows)
