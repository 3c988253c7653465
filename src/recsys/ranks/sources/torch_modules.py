"""A PyTorch module as scores of pairs: moved, switched to evaluation and batched, then put back as it was.

The batch follows from memory: a small first pass tells how many bytes a pair needs. Any other
callable `(users, items) -> scores` gets index tensors too and is called as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

import numpy as np

from recsys.errors import InputError, MissingExtraError, UnknownNameError
from recsys.types import Array, Int

_CPU_BYTES = 64 << 20
_MOST_BYTES = 4 << 30
_PROBE = 256  # pairs of the first pass
_SLACK = 3  # what a module computes besides the outputs of its parts
_LEAST = 1024
_BYTES_UNKNOWN = 1024  # taken for a pair of a function, whose inside cannot be seen
_PRECISIONS = ("bfloat16", "float16")


@contextmanager
def scoring(
    model: Any, *, device: Any = None, autocast: Any = None, batch: int | None = None
) -> Iterator[Callable[[Int, Int], Array]]:
    """A function (users, items) -> scores of the model, for as long as the block lasts.

    Args:
        model: a torch module, or any callable of two index tensors.
        device: where to compute; None leaves the model where it is.
        autocast: "bfloat16" or "float16" for mixed precision.
        batch: pairs in one forward pass; from the memory at hand when not given.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("torch", "torch", "Scoring with a PyTorch model") from error
    with ExitStack() as stack:
        there = _moved(stack, model, device, torch)
        _switched(stack, model)
        precision = _autocast(autocast, there, torch)
        yield _Forward(model, there, precision, batch, torch)


def _moved(stack: ExitStack, model: Any, device: Any, torch: Any) -> Any:
    """The device of the inputs; a module that lies elsewhere comes there, and goes back afterwards."""
    tensors = [] if not hasattr(model, "parameters") else [*model.parameters(), *model.buffers()]
    homes = {t.device for t in tensors}
    if device is None:
        return next(iter(homes)) if homes else torch.device("cpu")
    there = torch.device(device)
    if there.type != "cpu" and there.index is None and there.type in {h.type for h in homes}:
        there = next(h for h in homes if h.type == there.type)
    if len(homes) == 1 and homes != {there}:
        stack.callback(model.to, next(iter(homes)))
        model.to(there)
    elif len(homes) > 1:
        raise InputError(
            f"the model lies on several devices ({', '.join(sorted(map(str, homes)))}).",
            hint="Put it on one of them first: model.to(device).",
        )
    return there


def _switched(stack: ExitStack, model: Any) -> None:
    """Evaluation mode; every part gets its own mode back, a frozen layer too."""
    if not hasattr(model, "modules"):
        if callable(getattr(model, "eval", None)):  # something around a module; its modes cannot be seen
            model.eval()
        return
    modes = [(part, part.training) for part in model.modules()]

    def back() -> None:
        for part, mode in modes:
            part.training = mode

    stack.callback(back)
    model.eval()


def _autocast(wanted: Any, device: Any, torch: Any) -> Callable[[], Any]:
    if wanted is None or wanted is False:
        return nullcontext
    name = str(wanted).removeprefix("torch.")
    if name not in _PRECISIONS:
        raise UnknownNameError("value of autocast", wanted, _PRECISIONS)
    return lambda: torch.autocast(device.type, dtype=getattr(torch, name))


def _single(n: int) -> tuple[tuple[int, ...], ...]:
    """A module that ends in .squeeze() gives one pair, as the last batch may be, no dimension at all."""
    return ((),) if n == 1 else ()


class _Forward:
    """One model on one device, called with NumPy indices."""

    def __init__(self, model: Any, device: Any, precision: Any, batch: int | None, torch: Any) -> None:
        self.model, self.device, self.precision, self.torch = model, device, precision, torch
        self.batch = batch

    def __call__(self, users: Int, items: Int) -> Array:
        if len(users) == 0:
            return np.zeros(0, dtype=np.float32)
        if self.batch is None:
            self.batch = self._fitting(users[:_PROBE], items[:_PROBE])
        parts, at = [], 0
        while at < len(users):
            try:
                parts.append(self._pass(users[at : at + self.batch], items[at : at + self.batch]))
            except self.torch.cuda.OutOfMemoryError:
                if self.batch <= 1:
                    raise
                self.torch.cuda.empty_cache()
                self.batch = max(1, self.batch // 2)
                continue
            at += self.batch
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def _pass(self, users: Int, items: Int) -> Array:
        torch = self.torch
        if "O" in users.dtype.kind + items.dtype.kind:
            raise InputError(
                f"{type(self.model).__name__} takes row numbers, and the ids are texts.",
                hint="Map users and items to the rows of its tables first.",
            )
        # Not inference_mode: what a module keeps from this pass must not break its next training step.
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
                    "be a row of its tables, and all of it must lie on one device.",
                ) from error
        return self._flat(out, len(users))

    def _flat(self, out: Any, n: int) -> Array:
        torch = self.torch
        if not isinstance(out, torch.Tensor):
            out = torch.as_tensor(np.asarray(out)) if isinstance(out, np.ndarray) else out
        if not isinstance(out, torch.Tensor) or tuple(out.shape) not in {(n,), (n, 1), *_single(n)}:
            came = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
            raise InputError(
                f"{type(self.model).__name__} gave {came} for {n} pairs.",
                hint=f"A model gives one score a pair: shape ({n},) or ({n}, 1).",
            )
        flat = out.detach().reshape(-1)
        if flat.dtype in (torch.float16, torch.bfloat16):
            flat = flat.float()  # exact; NumPy has no bfloat16
        array: Array = flat.cpu().numpy()
        return array

    def _fitting(self, users: Int, items: Int) -> int:
        """Pairs whose outputs, of every part of the module, fit into the memory set aside."""
        bytes_seen = [0]

        def seen(_part: Any, _given: Any, out: Any) -> None:
            if isinstance(out, self.torch.Tensor):
                bytes_seen[0] += out.numel() * out.element_size()

        if not hasattr(self.model, "modules"):
            return self._budget() // _BYTES_UNKNOWN
        parts = [p for p in self.model.modules() if not list(p.children())]
        hooks = [part.register_forward_hook(seen) for part in parts]
        try:
            self._pass(users, items)
        finally:
            for hook in hooks:
                hook.remove()
        each = max(64, _SLACK * bytes_seen[0] // len(users))
        return max(_LEAST, self._budget() // each)

    def _budget(self) -> int:
        if self.device.type != "cuda":
            return _CPU_BYTES
        free, _ = self.torch.cuda.mem_get_info(self.device)
        return int(min(free // 4, _MOST_BYTES))
