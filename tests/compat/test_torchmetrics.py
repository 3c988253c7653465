"""The classes of torchmetrics: batches, resets, and words for what they refuse."""

import pytest

torch = pytest.importorskip("torch")
from recsys.compat import torchmetrics as face  # noqa: E402
from recsys.errors import InputError, NotDefinedError  # noqa: E402

INDEXES = torch.tensor([0, 0, 0, 4, 4, 4, 4])
PREDS = torch.tensor([0.2, 0.3, 0.5, 0.1, 0.3, 0.5, 0.2])
TARGET = torch.tensor([False, False, True, False, True, False, True])


def test_a_batch_has_its_own_value_and_all_rows_count_in_the_end():
    metric = face.RetrievalMRR()
    first = metric(PREDS[:3], TARGET[:3], INDEXES[:3])
    second = metric(PREDS[3:], TARGET[3:], indexes=INDEXES[3:])
    assert (first.item(), second.item(), metric.compute().item()) == (1.0, 0.5, 0.75)
    metric.reset()
    with pytest.raises(InputError, match="nothing was added"):
        metric.compute()


def test_a_query_may_go_on_in_the_next_batch():
    metric = face.RetrievalRecall(top_k=2)
    for part in (slice(0, 5), slice(5, 7)):
        metric.update(PREDS[part], TARGET[part], INDEXES[part])
    assert metric.compute() == face.RetrievalRecall(top_k=2)(PREDS, TARGET, INDEXES)


def test_a_failed_batch_is_not_kept():
    metric = face.RetrievalMAP(empty_target_action="error")
    metric.update(PREDS, TARGET, INDEXES)
    with pytest.raises(InputError, match="0 nor 1"):
        metric(PREDS, TARGET.long() * 3, INDEXES)
    assert metric.compute() == face.RetrievalMAP()(PREDS, TARGET, INDEXES)


def test_a_metric_is_moved_copied_and_counts_its_updates():
    metric = face.RetrievalMRR()
    assert metric.to("cpu") is metric
    assert (metric.device, metric.update_count, metric.update_called) == (torch.device("cpu"), 0, False)
    metric(PREDS[:3], TARGET[:3], INDEXES[:3])
    copied = metric.clone()
    copied.update(PREDS[3:], TARGET[3:], INDEXES[3:])
    assert (metric.update_count, copied.update_count, copied.update_called) == (1, 2, True)
    assert (metric.compute().item(), copied.compute().item()) == (1.0, 0.75)
    copied.reset()
    assert (copied.update_count, metric.update_count) == (0, 1)
    flags = metric.higher_is_better, metric.is_differentiable, metric.full_state_update
    assert flags == (True, False, False)


@pytest.mark.parametrize("name", face.__all__)
@pytest.mark.parametrize("aggregation", ["mean", lambda values, dim: values.amax(dim or 0)])
def test_results_are_on_the_device_that_was_asked_for(name, aggregation):
    metric = getattr(face, name)(aggregation=aggregation, empty_target_action="skip")
    metric.update(PREDS, TARGET, INDEXES)
    if name == "RetrievalRecallAtFixedPrecision":  # it compares numbers, and those of "meta" have none
        return
    for target in (TARGET, TARGET & False):
        metric.reset()
        metric.update(PREDS, target, INDEXES)
        found = metric.to(torch.device("meta")).compute()
        assert {value.device.type for value in (found if isinstance(found, tuple) else (found,))} == {"meta"}
        metric.update(PREDS, target, INDEXES)
        assert metric.device.type == "cpu"


def test_equal_scores_have_the_expectation_over_their_orders():
    flat, target = torch.full((4,), 0.5), torch.tensor([1, 0, 0, 0])
    assert face.RetrievalHitRate(top_k=1)(flat, target, torch.zeros(4).long()).item() == 0.25


def test_a_function_aggregates_the_values_of_the_queries():
    def upper(values, dim=None):
        assert (values.shape, dim) == ((2,), None)
        return values.quantile(0.75)

    assert face.RetrievalMRR(aggregation=upper)(PREDS, TARGET, INDEXES).item() == 0.875


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: face.RetrievalMAP(empty_target_action="no"), "empty_target_action"),
        (lambda: face.RetrievalMAP(ignore_index=0.5), "ignore_index"),
        (lambda: face.RetrievalMAP(aggregation="sum"), "aggregation"),
        (lambda: face.RetrievalMAP(top_k=0), "top_k"),
        (lambda: face.RetrievalPrecision(adaptive_k="no"), "adaptive_k"),
        (lambda: face.RetrievalRecallAtFixedPrecision(min_precision=2.0), "min_precision"),
        (lambda: face.RetrievalMAP()(PREDS, TARGET, INDEXES[:2]), "shape"),
        (lambda: face.RetrievalMAP()(PREDS, TARGET, INDEXES.int()), "long integers"),
        (lambda: face.RetrievalMAP(ignore_index=1)(PREDS[2:3], TARGET[2:3], INDEXES[2:3]), "no rows"),
        (lambda: face.RetrievalMAP()(PREDS[0], TARGET[0], INDEXES[0]), "no rows"),
        (lambda: face.RetrievalNormalizedDCG()(PREDS, TARGET.int() - 1, INDEXES), "negative"),
        (
            lambda: face.RetrievalMAP(empty_target_action="error")(PREDS, ~TARGET & False, INDEXES),
            "no positive",
        ),
    ],
)
def test_what_is_wrong_is_named(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_what_has_no_form_here_is_refused():
    with pytest.raises(NotDefinedError, match="max_fpr"):
        face.RetrievalAUROC(max_fpr=0.5)


def test_queries_without_a_positive_target_are_left_out_on_request():
    none = TARGET.clone()
    none[2] = False
    assert face.RetrievalMRR(empty_target_action="skip")(PREDS, none, INDEXES).item() == 0.5
    assert face.RetrievalMRR(empty_target_action="pos")(PREDS, none, INDEXES).item() == 0.75
    assert face.RetrievalMRR()(PREDS, none, INDEXES).item() == 0.25
    assert face.RetrievalMRR(empty_target_action="skip")(PREDS, none & False, INDEXES).item() == 0.0


@pytest.mark.parametrize(("top_k", "value"), [(None, 0.75), (2, 0.5), (1, 0.0)])
def test_the_area_under_the_curve_is_that_of_the_first_items(top_k, value):
    assert face.RetrievalAUROC(top_k=top_k)(PREDS, TARGET, INDEXES).item() == value


@pytest.mark.parametrize(("least", "recall", "k"), [(0.45, 1.0, 3), (0.9, 0.0, 4), (0.0, 1.0, 4)])
def test_the_best_recall_with_enough_precision(least, recall, k):
    found = face.RetrievalRecallAtFixedPrecision(min_precision=least)(PREDS, TARGET, INDEXES)
    assert [value.item() for value in found] == [recall, k]
