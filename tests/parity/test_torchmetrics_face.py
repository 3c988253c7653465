"""recsys.compat.torchmetrics: the tensors of every retrieval class, to the precision of float32."""

from __future__ import annotations

import pytest

from worlds.parity import FLOAT32, SEEDS, peer

torch = peer("torch")
theirs = peer("torchmetrics.retrieval")
import recsys.compat.torchmetrics as ours  # noqa: E402 - it needs nothing of the peer

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]
CLASSES = {
    "RetrievalMAP": [{}, {"top_k": 5}],
    "RetrievalMRR": [{}, {"top_k": 5}],
    "RetrievalPrecision": [{}, {"top_k": 5}, {"top_k": 50}, {"top_k": 12, "adaptive_k": True}],
    "RetrievalRecall": [{}, {"top_k": 5}],
    "RetrievalFallOut": [{}, {"top_k": 5}],
    "RetrievalHitRate": [{}, {"top_k": 1}],
    "RetrievalNormalizedDCG": [{}, {"top_k": 5}],
    "RetrievalRPrecision": [{}],
    "RetrievalAUROC": [{}, {"top_k": 5}],
    "RetrievalPrecisionRecallCurve": [{"max_k": 4}, {"max_k": 25, "adaptive_k": True}, {}],
    "RetrievalRecallAtFixedPrecision": [{"min_precision": 0.3}, {"min_precision": 0.99, "max_k": 3}],
}
ALL = [(name, options) for name, ways in CLASSES.items() for options in ways]


def own_mean(values, dim=None):
    return values.mean() if dim is None else values.mean(dim=dim)


def draw(seed: int, *, levels: int | None = None, shift: float = 0.0):
    """400 rows of 40 queries: some without a positive target, some without a negative one."""
    random = torch.Generator().manual_seed(seed)
    indexes = torch.randint(0, 40, (400,), generator=random) * 3
    preds = torch.rand(400, generator=random)
    if levels is not None:
        preds = (preds * levels).round() / levels
    positive = torch.rand(400, generator=random) < 0.3
    positive &= (torch.rand(120, generator=random) > 0.15)[indexes]
    positive |= (torch.rand(120, generator=random) < 0.05)[indexes]
    return preds - shift, positive, indexes


def same(name: str, options, data, *, batches: int = 2) -> None:
    pair = [getattr(module, name)(**options) for module in (theirs, ours)]
    for part in zip(*(tensor.chunk(batches) for tensor in data), strict=True):
        for metric in pair:
            metric.update(*part)
    found = [value if isinstance(value, tuple) else (value,) for value in (m.compute() for m in pair)]
    for expected, value in zip(*found, strict=True):
        assert (value.shape, value.dtype) == (expected.shape, expected.dtype)
        torch.testing.assert_close(value, expected, atol=FLOAT32, rtol=FLOAT32)


@pytest.mark.parametrize(("name", "options"), ALL)
def test_every_class(name, options):
    for seed in SEEDS:
        preds, target, indexes = draw(seed)
        same(name, options, (preds, target, indexes))
        same(name, options, (preds - 0.5, target.long(), indexes))  # half of the scores are below 0


@pytest.mark.parametrize("name", CLASSES)
def test_what_a_training_loop_asks_of_a_metric(name):
    preds, target, indexes = draw(7)
    answers = []
    for module in (theirs, ours):
        metric = getattr(module, name)()
        assert metric.to("cpu") is metric
        metric(preds, target, indexes)
        copied = metric.clone()
        copied.update(preds, target, indexes)
        metric.reset()
        answers.append(
            [(one.update_count, one.update_called, one.device, one.higher_is_better, one.is_differentiable,
              one.full_state_update) for one in (metric, copied)]
        )  # fmt: skip
    assert answers[0] == answers[1]


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("action", ["pos", "skip"])
@pytest.mark.parametrize("aggregation", ["median", "min", "max", own_mean])
def test_empty_targets_and_aggregations(name, action, aggregation):
    options = CLASSES[name][0] | {"empty_target_action": action, "aggregation": aggregation}
    same(name, options, draw(1))
    preds, target, indexes = draw(2)
    empty = torch.ones_like(target) if name == "RetrievalFallOut" else torch.zeros_like(target)
    if not callable(aggregation):
        same(name, options, (preds, empty, indexes))


@pytest.mark.parametrize("name", sorted({*CLASSES} - {"RetrievalRPrecision"}))
def test_targets_of_floats_and_ignored_rows(name):
    """R-precision of floats is an error of torchmetrics, which counts places in them."""
    preds, target, indexes = draw(3)
    same(name, CLASSES[name][0], (preds, target.float(), indexes))
    marked = target.long()
    marked[::7] = -1
    same(name, CLASSES[name][0] | {"ignore_index": -1}, (preds, marked, indexes))


def test_graded_targets():
    preds, _, indexes = draw(4)
    grades = torch.randint(0, 4, (400,), generator=torch.Generator().manual_seed(4))
    for options in CLASSES["RetrievalNormalizedDCG"]:
        same("RetrievalNormalizedDCG", options, (preds, grades, indexes))
        same("RetrievalNormalizedDCG", options, (preds, grades / 2.0, indexes))


@pytest.mark.parametrize("levels", [1, 5])
def test_equal_scores_of_classes_without_an_order_of_their_own(levels):
    for name, options in (*((n, o) for n, o in ALL if n == "RetrievalNormalizedDCG"), ("RetrievalAUROC", {})):
        same(name, options, draw(5, levels=levels))


@pytest.mark.parametrize("name", ["RetrievalMAP", "RetrievalMRR", "RetrievalPrecision", "RetrievalRecall"])
def test_equal_scores_lie_between_the_orders_that_torchmetrics_may_take(name):
    """Its order is that of an unstable sort: positive rows first and last are the two extremes."""
    preds, target, indexes = draw(6, levels=5)
    values = []
    for sign in (0, 1, -1):
        metric = getattr(ours if sign == 0 else theirs, name)(top_k=3)
        metric.update(preds + sign * 1e-3 * target, target, indexes)
        values.append(float(metric.compute()))
    expected, best, worst = values
    assert worst < expected < best


def test_every_class_of_the_package_is_here():
    assert {name for name in dir(theirs) if name.startswith("Retrieval")} == {*CLASSES} == {*ours.__all__}
