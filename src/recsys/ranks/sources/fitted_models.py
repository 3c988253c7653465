"""Models of other libraries, recognised by their attributes, without importing those libraries.

Factor models become Factors; models with predict, and callables, become Scores; models that only recommend
are asked for the list of each user. Libraries disagree on the name of the number of items and on the type of
the lists; the common ones are recognised, any other answer is an error.

A PyTorch module is moved, set to evaluation mode, called in batches, and restored afterwards. The batch size
follows from the memory: a small first pass measures the bytes per pair. Any other callable
`(users, items) -> scores` is called with index tensors too.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any

import numpy as np

from recsys.errors import InputError, UnknownNameError, needs_extra
from recsys.inputs.containers import as_array
from recsys.inputs.ids import refuse_meta
from recsys.ranks.sources.factors import Factors
from recsys.ranks.sources.scores import Scores
from recsys.ranks.sources.source import read_row_ids
from recsys.records.arrays import Array, Int
from recsys.records.checks import is_whole

_COUNT_PARAMETERS = ("k", "n", "N", "top_k", "topk", "top_n", "n_items", "num_items", "n_recommendations")
_ANY_NUMBER = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_CPU_BYTES = 64 << 20
_GPU_BYTES = 4 << 30
_PROBE_PAIRS = 256  # pairs of the first pass
_MEMORY_FACTOR = 3  # memory besides the outputs of the parts of a module
_MIN_BATCH = 1024
_BYTES_PER_PAIR = 1024  # assumed for a function, which cannot be measured
_PRECISIONS = ("bfloat16", "float16")


def from_model(
    model: Any,
    *,
    user_ids: Iterable[Any] | None = None,
    item_ids: Iterable[Any] | None = None,
    n_users: int | None = None,
    n_items: int | None = None,
    batch: int = 1 << 16,
) -> Factors | Scores:
    """Return a source of rankings from a fitted model.

    Factors and Scores are given the ids. Otherwise, tried in this order: factors (implicit's `user_factors`
    and `item_factors`, LightFM-like `get_user_representations`), a torch module `(users, items) -> scores`,
    an object with `predict(users, items)`. The last two need `n_users` and `n_items`, or ids.

    Args:
        model: the fitted model, or the path of one that `recsys train` or `recsys.models.save_model` wrote.
        user_ids: the id of each row of users; default: the model's attribute of this name, else row numbers.
        item_ids: the same for items.
        n_users: the number of users; default: the model's attribute, else the number of ids.
        n_items: the same for items.
        batch: pairs scored at once.

    Raises:
        InputError: the model offers no scores, or the number of users or items is unknown.
    """
    if isinstance(model, Factors | Scores):
        return model.with_ids(user_ids, item_ids)
    if isinstance(model, str | os.PathLike):
        from recsys.ranks.sources.source_files import load_model

        return load_model(model, user_ids=user_ids, item_ids=item_ids)
    user_ids = getattr(model, "user_ids", None) if user_ids is None else user_ids
    item_ids = getattr(model, "item_ids", None) if item_ids is None else item_ids
    n_users = getattr(model, "n_users", None) if n_users is None else n_users
    n_items = getattr(model, "n_items", None) if n_items is None else n_items
    if hasattr(model, "user_factors") and hasattr(model, "item_factors"):
        users, items = _factor_array(model.user_factors), _factor_array(model.item_factors)
        return Factors(users, items, user_ids=user_ids, item_ids=item_ids)
    if hasattr(model, "get_user_representations") and hasattr(model, "get_item_representations"):
        # The bias of a user shifts all of its scores equally, so no rank depends on it.
        (_, users), (bias, items) = model.get_user_representations(), model.get_item_representations()
        return Factors(users, items, user_ids=user_ids, item_ids=item_ids, item_bias=bias)
    if user_ids is not None:
        user_ids = read_row_ids(user_ids, "user")
        n_users = len(user_ids) if n_users is None else n_users
    if item_ids is not None:
        item_ids = read_row_ids(item_ids, "item")
        n_items = len(item_ids) if n_items is None else n_items
    scorer = pair_scorer(model, batch=batch)
    if n_users is None or n_items is None:
        raise InputError(
            f"{type(model).__name__} has no factors, and how many users and items it has is unknown.",
            hint="Wrap it: recsys.from_model(model, n_users=…, n_items=…), or with user_ids= and item_ids=.",
        )
    block = _score_blocks(model, scorer, batch, n_items)
    return Scores(block, n_users=n_users, n_items=n_items, user_ids=user_ids, item_ids=item_ids)


def _factor_array(factors: Any) -> Array:
    return factors.to_numpy() if hasattr(factors, "to_numpy") else as_array(factors)


def pair_scorer(model: Any, *, batch: int = 1 << 16) -> Callable[[Array, Array], Array]:
    """Return a function that scores each (user, item) of two arrays by a module, `predict` or a callable."""
    _check_batch(batch)
    is_wrapper = callable(model) and callable(getattr(model, "eval", None)) and not hasattr(model, "predict")
    is_torch = hasattr(model, "state_dict") or is_wrapper
    predict = getattr(model, "predict", model if callable(model) else None)
    if predict is None and not is_torch:
        raise InputError(
            f"{type(model).__name__} offers neither factors nor predict(users, items).",
            hint="Pass recsys.Factors(U, V), recsys.Scores(matrix), or recsys.Scores(function, n_users=…, "
            "n_items=…).",
        )

    def score_batch(users: Array, items: Array) -> Array:
        if predict is None or is_torch:
            with scoring(model, batch=len(users)) as forward:
                return forward(users, items)
        return as_array(predict(users, items)).reshape(-1)

    def score(users: Array, items: Array) -> Array:
        parts = [score_batch(users[s : s + batch], items[s : s + batch]) for s in range(0, len(users), batch)]
        return np.concatenate(parts) if parts else np.zeros(0)

    return score


def _check_batch(batch: Any) -> None:
    if not is_whole(batch, 1):
        raise InputError(
            f"batch={batch!r} is not a number of pairs.", hint="Use batch=1024, or leave it out."
        )


def pair_scores(model: Any, users: Array, items: Array, *, batch: int = 1 << 16) -> Array:
    """Return the model's score of each (user, item) of two arrays; as many numbers as pairs, or an error."""
    return _check_one_per_pair(model, pair_scorer(model, batch=batch)(users, items), len(users))


def _check_one_per_pair(model: Any, scores: Array, n: int) -> Array:
    if scores.shape != (n,):
        raise InputError(
            f"{type(model).__name__} gave {scores.size} scores for {n} pairs of user and item.",
            hint="It must return one number per pair, of shape (n,) or (n, 1).",
        )
    return scores


def _score_blocks(model: Any, scorer: Callable[[Array, Array], Array], batch: int, n_items: int) -> Any:
    """Score blocks from a scorer of pairs, a few users at a time: indices take more memory than scores."""

    def score_users(rows: Int) -> Array:
        users, items = np.repeat(rows, n_items), np.tile(np.arange(n_items), len(rows))
        return _check_one_per_pair(model, scorer(users, items), len(users)).reshape(len(rows), n_items)

    def block(rows: Int) -> Array:
        users_at_once = max(1, batch // max(1, n_items))
        first = score_users(rows[:users_at_once])
        scores = np.empty((len(rows), n_items), dtype=first.dtype)
        scores[:users_at_once] = first
        for start in range(users_at_once, len(rows), users_at_once):
            scores[start : start + users_at_once] = score_users(rows[start : start + users_at_once])
        return scores

    return block


def lists_from_recommender(model: Any, users: Iterable[Any], k: int) -> dict[Any, list[Any]]:
    """Return {user: items recommended by the model}, best first, at most k items.

    >>> class Popular:
    ...     def recommend(self, user, n):
    ...         return [("b", 3.0), ("a", 1.0)][:n]
    >>> lists_from_recommender(Popular(), [1, 2], 2)
    {1: ['b', 'a'], 2: ['b', 'a']}
    """
    ask = list_asker(model)
    lists = {}
    for user in users:
        user_id = user.item() if isinstance(user, np.generic) else user
        lists[user_id] = listed_items(ask(user_id, k), user_id)[:k]
    return lists


def list_asker(model: Any) -> Callable[[Any, int], Any]:
    """Return a function (user, k) -> what the model recommends, whatever it calls the length of the list."""
    try:
        parameters = dict(inspect.signature(model.recommend).parameters)
    except (TypeError, ValueError):  # compiled without a signature
        parameters = {}
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    name = next((n for n in _COUNT_PARAMETERS if n in parameters), "n" if takes_any else None)
    required = [n for n, p in parameters.items() if p.default is p.empty and p.kind not in _ANY_NUMBER]
    needed = required[2:] if name is None else [n for n in required[1:] if n != name]
    if needed:
        raise InputError(
            f"{type(model).__name__}.recommend needs {', '.join(needed)} besides a user and a number.",
            table="lists",
            hint="Call it and pass its lists; recsys.adapters.from_implicit reads those of implicit.",
        )
    if name is not None:
        return lambda user, k: model.recommend(user, **{name: k})
    ask: Callable[[Any, int], Any] = model.recommend
    return ask


def listed_items(answer: Any, user: Any) -> list[Any]:
    """Return the items of a list, of (item, score) pairs or rows, or of two arrays (items, scores)."""
    is_pair = isinstance(answer, tuple) and len(answer) == 2
    if is_pair and all(hasattr(one, "__array__") and np.ndim(one) == 1 for one in answer):
        answer = answer[0]
    if isinstance(answer, np.ndarray) or hasattr(answer, "detach"):
        rows = as_array(answer)
        items = rows if rows.ndim < 2 else rows[:, 0]
        if rows.ndim == 2 and rows.dtype.kind == "f" and (items == np.floor(items)).all():
            items = items.astype(np.int64)  # ids that are floats only because the scores are
        return list(items.tolist())
    unordered = isinstance(answer, str | Mapping | AbstractSet) or hasattr(answer, "columns")
    if unordered or not isinstance(answer, Iterable):
        raise InputError(
            f"recommend() gave {type(answer).__name__} for user {user!r}.",
            table="lists",
            hint="It must give a list of items, best first, or of (item, score) pairs.",
        )
    entries = [entry[0] if isinstance(entry, tuple | list) or np.ndim(entry) else entry for entry in answer]
    return [item.item() if hasattr(item, "detach") else item for item in entries]


def _torch_dtype(array: Array) -> Any:
    native = array.dtype.isnative and array.dtype.itemsize <= 8 and array.dtype.kind != "u"
    return array.dtype if native or array.dtype == np.uint8 else np.float64


@contextmanager
def scoring(
    model: Any, *, device: Any = None, autocast: Any = None, batch: int | None = None
) -> Iterator[Callable[[Int, Int], Array]]:
    """Yield a function (users, items) -> scores of the model, valid inside the with block.

    Args:
        model: a torch module, or any callable of two index tensors.
        device: where to compute; None leaves the model where it is.
        autocast: "bfloat16" or "float16" for mixed precision.
        batch: pairs in one forward pass; by default as many as fit the memory.
    """
    if not callable(model):
        raise InputError(
            f"the model came as {type(model).__name__}, which cannot be called.",
            hint="Pass a torch module, a function of (users, items), or the scores as an array.",
        )
    if batch is not None:
        _check_batch(batch)
    with needs_extra("torch", "torch", "Scoring with a PyTorch model"):
        import torch
    with ExitStack() as stack:
        target = _move_model(stack, model, device, torch)
        _switch_to_eval(stack, model)
        precision: Callable[[], Any] = nullcontext
        if autocast is not None and autocast is not False:
            name = repr(autocast).strip("'").removeprefix("torch.")
            if name not in _PRECISIONS:
                raise UnknownNameError("value of autocast", autocast, _PRECISIONS)
            precision = partial(torch.autocast, target.type, dtype=getattr(torch, name))
        yield _Forward(model, target, precision, batch, torch)


def _move_model(stack: ExitStack, model: Any, device: Any, torch: Any) -> Any:
    """Return the device of the inputs; a module on another device is moved there, and back afterwards."""
    tensors = [] if not hasattr(model, "parameters") else [*model.parameters(), *model.buffers()]
    devices = {t.device for t in tensors}
    if device is None:
        return next(iter(devices)) if devices else torch.device("cpu")
    try:
        target = torch.device(device)
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"device={device!r} is not a device of torch ({reason}).",
            hint='Use "cpu", "cuda" or leave it out.',
        ) from None
    if target.type != "cpu" and target.index is None and target.type in {h.type for h in devices}:
        target = next(h for h in devices if h.type == target.type)
    if len(devices) == 1 and devices != {target}:
        stack.callback(model.to, next(iter(devices)))
        model.to(target)
    elif len(devices) > 1:
        raise InputError(
            f"the model is on several devices ({', '.join(sorted(map(str, devices)))}).",
            hint="Put it on one of them first: model.to(device).",
        )
    return target


def _switch_to_eval(stack: ExitStack, model: Any) -> None:
    """Set evaluation mode; afterwards every part gets its own mode back, also a frozen layer."""
    if not hasattr(model, "modules"):
        if callable(getattr(model, "eval", None)):  # a wrapper of a module, whose modes are unknown
            model.eval()
        return
    modes = [(part, part.training) for part in model.modules()]

    def restore_modes() -> None:
        for part, mode in modes:
            part.training = mode

    stack.callback(restore_modes)
    model.eval()


class _Forward:
    """One model on one device, called with NumPy indices."""

    def __init__(self, model: Any, device: Any, precision: Any, batch: Any, torch: Any) -> None:
        self.model, self.device, self.precision, self.torch = model, device, precision, torch
        self.batch = None if batch is None else int(batch)

    def __call__(self, users: Int, items: Int) -> Array:
        if len(users) == 0:
            return np.zeros(0, dtype=np.float32)
        if self.batch is None:
            self.batch = self._batch_size(users[:_PROBE_PAIRS], items[:_PROBE_PAIRS])
        parts, at = [], 0
        while at < len(users):
            try:
                parts.append(self._forward_batch(users[at : at + self.batch], items[at : at + self.batch]))
            except self.torch.cuda.OutOfMemoryError:
                if self.batch <= 1:
                    raise
                self.torch.cuda.empty_cache()
                self.batch = max(1, self.batch // 2)
                continue
            at += self.batch
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def _forward_batch(self, users: Int, items: Int) -> Array:
        torch = self.torch
        if "O" in users.dtype.kind + items.dtype.kind:
            raise InputError(
                f"{type(self.model).__name__} takes row numbers, and the ids are strings.",
                hint="Map users and items to the rows of its tables first.",
            )
        # Not inference_mode: tensors that a module keeps from this pass would break its next training step.
        with torch.no_grad(), self.precision():
            u = torch.as_tensor(users, device=self.device)
            i = torch.as_tensor(items, device=self.device)
            try:
                out = self.model(u, i)
            except torch.cuda.OutOfMemoryError:
                raise
            except (IndexError, RuntimeError, TypeError) as error:
                raise InputError(
                    f"{type(self.model).__name__} could not score users {int(users.min())} to "
                    f"{int(users.max())} and items {int(items.min())} to {int(items.max())} on "
                    f"{self.device}: {type(error).__name__}: {str(error).splitlines()[0]}",
                    hint="A model takes (users, items), two index tensors of one length; every index must "
                    "be a row of its tables, and all of the model must be on one device.",
                ) from error
        return self._score_array(out, len(users))

    def _score_array(self, out: Any, n: int) -> Array:
        torch = self.torch
        if not isinstance(out, torch.Tensor):
            is_numbers = isinstance(out, np.ndarray) and out.dtype.kind in "fiub"
            # A copy in float64 where the type is one that torch does not know: longdouble, big-endian.
            out = torch.as_tensor(np.asarray(out, dtype=_torch_dtype(out))) if is_numbers else out
        shapes: set[tuple[int, ...]] = {(n,), (n, 1)}
        if n == 1:
            shapes.add(())  # a module that ends in .squeeze() gives no dimension for a single pair
        if not isinstance(out, torch.Tensor) or tuple(out.shape) not in shapes:
            received = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
            raise InputError(
                f"{type(self.model).__name__} gave {received} for {n} pairs.",
                hint=f"A model gives one score per pair: shape ({n},) or ({n}, 1).",
            )
        refuse_meta(out)
        flat = out.detach().reshape(-1)
        if flat.dtype in (torch.float16, torch.bfloat16):
            flat = flat.float()  # exact; NumPy has no bfloat16
        array: Array = flat.cpu().numpy()
        return array

    def _batch_size(self, users: Int, items: Int) -> int:
        """Return the number of pairs whose outputs of all parts of the module fit into the memory budget."""
        output_bytes = [0]

        def count_bytes(_part: Any, _inputs: Any, out: Any) -> None:
            if isinstance(out, self.torch.Tensor):
                output_bytes[0] += out.numel() * out.element_size()

        if not hasattr(self.model, "modules"):
            return self._memory_budget() // _BYTES_PER_PAIR
        parts = [p for p in self.model.modules() if not list(p.children())]
        hooks = [part.register_forward_hook(count_bytes) for part in parts]
        try:
            self._forward_batch(users, items)
        finally:
            for hook in hooks:
                hook.remove()
        bytes_per_pair = max(64, _MEMORY_FACTOR * output_bytes[0] // len(users))
        return max(_MIN_BATCH, self._memory_budget() // bytes_per_pair)

    def _memory_budget(self) -> int:
        if self.device.type != "cuda":
            return _CPU_BYTES
        free, _ = self.torch.cuda.mem_get_info(self.device)
        return int(min(free // 4, _GPU_BYTES))
