"""Evaluation inside training loops: a score after every epoch, when to stop, and one final test.

Stopping and tuning use the last item of each user's training data; the test is opened once, at the end. A
plain loop calls the object. Lightning's Trainer takes it as a callback because it has the hooks, so Lightning
is not imported here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from recsys.errors import InputError, RecsysError
from recsys.evaluation.candidates import evaluate_candidates
from recsys.evaluation.options import CandidateKeywords
from recsys.evaluation.results import Evaluation
from recsys.metrics.registry import Metrics, Request, parse_all
from recsys.models.implicit_feedback import Pairs
from recsys.ranks.sources.candidate_sets import Candidates, read_candidates

__all__ = ["EpochEvaluation", "FinalTest", "Fitted", "fit", "hold_out_last"]

if TYPE_CHECKING:
    from recsys.models.training import History, TrainKeywords

_HOOKS = ("on_", "setup", "teardown")


def hold_out_last(pairs: Pairs, *, negatives: int = 99, seed: int = 0) -> tuple[Pairs, Candidates]:
    """Training data without each user's last item, and those items among negatives, for early stopping.

    The negatives are items the user has no pair with in the training data; items of the test are neither
    avoided nor preferred.

    >>> pairs = Pairs.of([0, 0, 1, 1], [0, 1, 1, 2], n_items=5, order=[1, 2, 1, 2])
    >>> rest, cases = hold_out_last(pairs, negatives=2)
    >>> len(rest), cases.items.tolist()
    (2, [1, 2])
    """
    rest, last = pairs.without_last()
    if not len(last):
        raise InputError("no user has two items, so none can be set aside.")
    return rest, Candidates.of(last.users, last.items, pairs.unseen(last.users, negatives, seed=seed))


class EpochEvaluation:
    """Evaluates a model after each epoch and says when to stop.

    Args:
        cases: a Dataset, DataLoader or iterable of (user, positive, negatives), or Candidates.
        metric: what decides, such as "ndcg@10"; its registered direction says what is better.
        metrics: what else to measure each time.
        patience: how many evaluations without a better value before stopping; None never stops.
        min_delta: by how much a value must be better to count.
        every: how many epochs between evaluations.
        keep_best: keep a copy of the best weights, for `restore`; otherwise only the values are stored.
        on_evaluation: called with (epoch, result) after each evaluation.
        options: of `evaluate_candidates` (device, autocast, batch, duplicates, conventions).

    >>> watch = EpochEvaluation([(0, 1, [0, 2])], metric="mrr", patience=1)
    >>> scores = iter([[0.3, 0.9, 0.1], [0.9, 0.1, 0.2], [0.1, 0.2, 0.3]])
    >>> import numpy as np
    >>> model = lambda users, items: np.array([0.5, 0.2, 0.1])
    >>> watch(1, model), watch(2, model), watch.best_epoch, watch.best
    (False, True, 1, 1.0)
    """

    def __init__(
        self,
        cases: Any,
        *,
        metric: str = "ndcg@10",
        metrics: Iterable[str] = (),
        patience: int | None = None,
        min_delta: float = 0.0,
        every: int = 1,
        keep_best: bool = False,
        on_evaluation: Callable[[int, Evaluation], object] | None = None,
        **options: Unpack[CandidateKeywords],
    ) -> None:
        if every < 1 or (patience is not None and patience < 1) or not 0 <= min_delta < math.inf:
            raise InputError(
                f"every={every}, patience={patience}, min_delta={min_delta} cannot be followed.",
                hint="every and patience are at least 1, min_delta at least 0.",
            )
        self.cases = read_candidates(cases)
        self.requests: list[Request] = parse_all([metric, *metrics], None)
        self.metric = str(self.requests[0])
        self.patience, self.min_delta, self.every, self.keep_best = patience, min_delta, every, keep_best
        self.on_evaluation, self.options = on_evaluation, options
        self.history: list[tuple[int, dict[str, float]]] = []
        self.best: float | None = None
        self.best_epoch: int | None = None
        self._best_weights: dict[str, Any] | None = None

    def __call__(self, epoch: int, model: Any) -> bool:
        """Evaluate after this epoch (counted from 1); True means that training should stop."""
        if epoch % self.every:
            return False
        result = evaluate_candidates(model, self.cases, self.requests, **self.options)
        self.history.append((epoch, dict(result)))
        value, sign = result[self.metric], 1 if self.requests[0].metric.better == "higher" else -1
        gain = math.inf if self.best is None else sign * (value - self.best)
        if gain > self.min_delta and not math.isnan(value):
            self.best, self.best_epoch = value, epoch
            if self.keep_best:
                self._best_weights = {n: v.detach().cpu().clone() for n, v in model.state_dict().items()}
        if self.on_evaluation is not None:
            self.on_evaluation(epoch, result)
        return self.exhausted

    @property
    def exhausted(self) -> bool:
        """Whether the last `patience` evaluations brought nothing better."""
        if self.patience is None or not self.history:
            return False
        since = [epoch for epoch, _ in self.history if self.best_epoch is None or epoch > self.best_epoch]
        return len(since) >= self.patience

    def restore(self, model: Any) -> Any:
        """Give the model the weights of its best epoch."""
        if self._best_weights is None:
            raise RecsysError(
                "no weights were kept.", hint="Pass keep_best=True, and evaluate at least once before."
            )
        model.load_state_dict(self._best_weights)
        return model

    # The interface of Lightning's callbacks.

    @property
    def state_key(self) -> str:
        return f"{type(self).__qualname__}[{self.metric}]"

    @property
    def _legacy_state_key(self) -> str:
        """The name under which Lightning looks when it reads a checkpoint."""
        return self.state_key

    def state_dict(self) -> dict[str, Any]:
        """Return the numbers so far, for a checkpoint of the training."""
        return {"history": self.history, "best": self.best, "best_epoch": self.best_epoch}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        self.history = [(int(epoch), dict(values)) for epoch, values in state["history"]]
        self.best, self.best_epoch = state["best"], state["best_epoch"]

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Evaluate the module, log the values, stop the trainer: Lightning's hook."""
        stop = self(int(trainer.current_epoch) + 1, pl_module)
        if self.history and self.history[-1][0] == int(trainer.current_epoch) + 1:
            pl_module.log_dict(self.history[-1][1])
        if stop:
            trainer.should_stop = True

    def __getattr__(self, name: str) -> Any:
        """Do nothing in Lightning's dozens of other hooks."""
        if name.startswith(_HOOKS):
            return lambda *_, **__: None
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


class FinalTest:
    """Test cases that can be evaluated once, so that no model is chosen on them.

    >>> import numpy as np
    >>> test = FinalTest([(0, 1, [0, 2])])
    >>> test.evaluate(np.array([[0.9, 0.1, 0.2]]), ["hit@1"])["hit@1"]
    1.0
    >>> test.evaluate(np.array([[0.9, 0.1, 0.2]]), ["hit@1"])
    Traceback (most recent call last):
    recsys.errors.RecsysError: this test was opened already. ...
    """

    def __init__(self, cases: Any) -> None:
        self._cases: Candidates | None = read_candidates(cases)

    def evaluate(
        self, model: Any, metrics: Metrics = None, **options: Unpack[CandidateKeywords]
    ) -> Evaluation:
        """Return the one evaluation, by `evaluate_candidates`; a second call raises RecsysError."""
        if self._cases is None:
            raise RecsysError(
                "this test was opened already.",
                hint="Choose between models by held-out items (EpochEvaluation), and test the chosen one.",
            )
        cases, self._cases = self._cases, None
        return evaluate_candidates(model, cases, metrics, **options)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model trained on all pairs for the number of epochs that was best on the held-out items.

    `tuned` is the model of the best epoch without the held-out items, `model` the one to use.
    """

    model: Any
    tuned: Any
    watch: EpochEvaluation | None
    history: History


def fit(
    make: Callable[[str], Any],
    pairs: Pairs,
    *,
    epochs: int = 20,
    patience: int = 3,
    metric: str = "ndcg@10",
    cases: Any = None,
    refit: bool = True,
    device: Any = "auto",
    seed: int = 0,
    on_evaluation: Callable[[int, Evaluation], object] | None = None,
    **training: Unpack[TrainKeywords],
) -> Fitted:
    """Choose the number of epochs on each user's last item, then train on all pairs for that many.

    Args:
        make: called with "tuned" and, for the model to use, with "final"; returns an untrained network.
        pairs: all training pairs, with their order in time.
        epochs: the largest number of epochs.
        patience: evaluations without a better value before stopping.
        metric: what decides on the held-out items.
        cases: held-out items among negatives; by default those of `hold_out_last`.
        refit: train anew on all pairs; if False, `model` is `tuned`.
        device: "cpu", "cuda", "mps" or "auto".
        seed: of the negatives and the order of training.
        on_evaluation: called with (epoch, result) after each evaluation.
        training: other arguments of `recsys.models.train`.

    >>> from recsys.models import GMF
    >>> pairs = Pairs.of([0, 0, 1, 1], [0, 1, 1, 2], n_items=5, order=[1, 2, 1, 2])
    >>> cases = hold_out_last(pairs, negatives=2)[1]
    >>> fitted = fit(lambda stage: GMF(2, 5), pairs, epochs=2, cases=cases, device="cpu")
    >>> fitted.watch.best_epoch in (1, 2)
    True
    """
    from recsys.models.training import train

    held_out = read_candidates(cases) if cases is not None else hold_out_last(pairs, seed=seed)[1]
    rest, _ = pairs.without_last()
    watch = EpochEvaluation(
        held_out,
        metric=metric,
        metrics=["hit@10"],
        patience=patience,
        keep_best=True,
        device=None,
        on_evaluation=on_evaluation,
    )
    options: dict[str, Any] = {"device": device, "seed": seed, **training}
    tuned = make("tuned")
    history = train(tuned, rest, epochs=epochs, after_epoch=watch, **options)
    if watch.best_epoch is None:
        raise RecsysError(f"{metric} was not defined on any held-out item.")
    watch.restore(tuned)
    if not refit:
        return Fitted(tuned, tuned, watch, history)
    final = make("final")
    history = train(final, pairs, epochs=watch.best_epoch, **options)
    return Fitted(final, tuned, watch, history)


def __dir__() -> list[str]:
    return __all__
