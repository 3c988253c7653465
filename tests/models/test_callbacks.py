"""Evaluation inside training loops: reports, early stopping, best weights, and a test that opens once."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from recsys.errors import InputError, RecsysError
from recsys.models.callbacks import EpochEvaluation, FinalTest, fit, hold_out_last
from recsys.models.implicit_feedback import Pairs
from worlds.pairs import two_tastes

torch = pytest.importorskip("torch")

from recsys.models import GMF, train  # noqa: E402


class Scripted:
    """A model that gives its one positive the next of the given places at each call."""

    def __init__(self, places):
        self.places = iter(places)

    def __call__(self, users, items):
        del users
        place = next(self.places)
        scores = np.where(np.arange(len(items)) <= place - 1, 1.0, 0.0) + np.arange(len(items)) / 100
        scores[0] = 0.999
        return scores


def run(places, **options):
    watch = EpochEvaluation([(0, 0, [*range(1, 10)])], metric="mrr", **options)
    model = Scripted(places)
    stops = []
    for epoch in range(1, len(places) + 1):
        stops.append(watch(epoch, model))
        if stops[-1]:
            break
    return watch, stops


def test_it_stops_when_patience_is_used_up():
    watch, stops = run([4, 2, 3, 3, 1], patience=2)
    assert stops == [False, False, False, True]
    assert (watch.best_epoch, watch.best) == (2, 0.5)
    assert [values["mrr"] for _, values in watch.history] == [1 / 4, 1 / 2, 1 / 3, 1 / 3]


def test_without_patience_it_never_stops():
    watch, stops = run([1, 5, 5, 5, 5])
    assert not any(stops)
    assert watch.best_epoch == 1


def test_a_gain_must_exceed_min_delta():
    assert run([4, 3, 1, 2], patience=2, min_delta=0.4)[0].best_epoch == 3
    assert run([4, 3, 3, 1], patience=2, min_delta=0.4)[1] == [False, False, True]


def test_lower_is_better_where_the_registry_says_so():
    watch = EpochEvaluation([(0, 0, [*range(1, 10)])], metric="average_rank", patience=1)
    model = Scripted([5, 3, 4])
    assert [watch(e, model) for e in (1, 2, 3)] == [False, False, True]
    assert (watch.best_epoch, watch.best) == (2, 3.0)


def test_it_may_evaluate_every_few_epochs():
    watch = EpochEvaluation([(0, 0, [1, 2])], metric="mrr", every=3)
    model = Scripted([1, 2])
    assert [watch(e, model) for e in range(1, 7)] == [False] * 6
    assert [epoch for epoch, _ in watch.history] == [3, 6]


def test_the_model_keeps_training_afterwards():
    rest, cases = hold_out_last(two_tastes(), negatives=10)
    modes = []
    watch = EpochEvaluation(cases)

    def after(epoch, model):
        stop = watch(epoch, model)
        modes.append(model.training)
        return stop

    train(GMF(60, 40), rest, epochs=2, device="cpu", after_epoch=after)
    assert modes == [True, True]


def test_the_best_weights_come_back_and_only_on_request():
    rest, cases = hold_out_last(two_tastes(), negatives=10)
    model = GMF(60, 40)
    watch = EpochEvaluation(cases, metric="ndcg@5", keep_best=True)
    train(model, rest, epochs=6, learning_rate=0.05, device="cpu", after_epoch=watch)
    watch.restore(model)
    again = EpochEvaluation(cases, metric="ndcg@5")
    again(1, model)
    assert again.best == watch.best
    with pytest.raises(RecsysError, match="keep_best"):
        again.restore(model)


def test_the_held_out_items_are_each_users_last_and_leave_the_training_data():
    pairs = two_tastes()
    rest, cases = hold_out_last(pairs, negatives=15, seed=2)
    assert len(rest) == len(pairs) - 60
    for user, item, row in zip(cases.users, cases.items, cases.negatives.reshape(-1, 15), strict=True):
        mine = pairs.users == user
        assert item == pairs.items[mine][np.argmax(pairs.order[mine])]
        assert not set(row.tolist()) & set(pairs.items[mine].tolist())
    with pytest.raises(InputError, match="two items"):
        hold_out_last(Pairs.of([0, 1], [0, 1], order=[1, 2]))


def test_fit_trains_for_the_best_number_of_epochs():
    pairs = two_tastes()
    cases = hold_out_last(pairs, negatives=10)[1]
    stages = []

    def make(stage):
        stages.append(stage)
        return GMF(60, 40, factors=4)

    epochs = []
    fitted = fit(
        make, pairs, cases=cases, epochs=30, patience=3, learning_rate=0.02, batch=128, device="cpu",
        on_evaluation=lambda epoch, _result: epochs.append(epoch),
    )  # fmt: skip
    assert stages == ["tuned", "final"]
    assert len(fitted.history.epochs) == fitted.watch.best_epoch
    assert epochs == [epoch for epoch, _ in fitted.watch.history]
    assert fitted.watch.best > 0.5  # half of all candidates are of the other taste: chance is below 0.4
    alone = fit(make, pairs, cases=cases, epochs=2, refit=False, device="cpu")
    assert alone.model is alone.tuned


def test_its_state_survives_a_checkpoint():
    watch, _ = run([4, 2, 3], patience=2)
    other = EpochEvaluation([(0, 0, [1])], metric="mrr", patience=2)
    other.load_state_dict(watch.state_dict())
    assert (other.best, other.best_epoch, other.history) == (watch.best, watch.best_epoch, watch.history)
    assert watch.state_key == "EpochEvaluation[mrr]"


def test_hooks_it_does_not_need_do_nothing_and_other_names_are_errors():
    watch = EpochEvaluation([(0, 0, [1])])
    assert watch.on_train_batch_end(None, None, 3, batch_idx=4) is None
    assert watch.setup(None, None, stage="fit") is None
    with pytest.raises(AttributeError, match="no attribute 'best_model'"):
        _ = watch.best_model


@pytest.mark.parametrize("wrong", [{"every": 0}, {"patience": 0}, {"min_delta": -1.0}])
def test_invalid_options_are_refused(wrong):
    with pytest.raises(InputError, match="cannot be followed"):
        EpochEvaluation([(0, 0, [1])], **wrong)


def test_a_test_opens_once_whatever_happens():
    test = FinalTest([(0, 1, [0, 2])])
    with pytest.raises(InputError):
        test.evaluate(lambda _u, _i: torch.zeros(2))
    with pytest.raises(RecsysError, match="opened already"):
        test.evaluate(lambda _u, i: i.float())


def test_lightnings_hook_logs_what_was_evaluated_and_stops_the_trainer():
    logged = []

    class Module(Scripted):
        log_dict = staticmethod(logged.append)

    watch = EpochEvaluation([(0, 0, [1, 2, 3])], metric="mrr", patience=1, every=2)
    trainer, module = SimpleNamespace(current_epoch=0, should_stop=False), Module([1, 2, 3])
    stops = []
    for epoch in range(4):
        trainer.current_epoch = epoch
        watch.on_train_epoch_end(trainer, module)
        stops.append(trainer.should_stop)
    assert [epoch for epoch, _ in watch.history] == [2, 4]
    assert logged == [values for _, values in watch.history]
    assert stops == [False, False, False, True]


def test_a_metric_that_is_nowhere_defined_chooses_no_epoch():
    pairs = Pairs.of([0, 0, 1, 1], [0, 1, 2, 1], order=[1, 2, 3, 4])
    with pytest.raises(RecsysError, match="auc was not defined on any held-out item"):
        fit(lambda _: GMF(2, 3, factors=2), pairs, cases=[(0, 0, [])], metric="auc", epochs=1, device="cpu")
