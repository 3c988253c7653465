"""Scores of pairs from a PyTorch module: moved, set to evaluation mode, batched, and restored afterwards.

The batch size follows from the memory: a small first pass measures the bytes per pair. Any other
callable `(users, items) -> scores` is called with index tensors too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

import numpy as np

from recsys.errors import InputError, MissingExtraError, UnknownNameError
from recsys.types import Array, Int

_CPU_BYTES = 64 << 20
_GPU_BYTES = 4 << 30
_PROBE_PAIRS = 256  # pairs of the first pass
_MEMORY_FACTOR = 3  # memory besides the outputs of the parts of a module
_MIN_BATCH = 1024
_BYTES_PER_PAIR = 1024  # assumed for a function, which cannot be measured
_PRECISIONS = ("bfloat16", "float16")


@contextmanager
def scoring(
    model: Any, *, device: Any = None, autocast: Any = None, batch: int | None = None
) -> Iterator[Callable[[Int, Int], Array]]:
    """A function (users, items) -> scores of the model, valid inside the with block.

    Args:
        model: a torch module, or any callable of two index tensors.
        device: where to compute; None leaves the model where it is.
        autocast: "bfloat16" or "float16" for mixed precision.
        batch: pairs in one forward pass; by default as many as fit the memory.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("torch", "torch", "Scoring with a PyTorch model") from error
    with ExitStack() as stack:
        target = _move_model(stack, model, device, torch)
        _switch_to_eval(stack, model)
        precision = _autocast(autocast, target, torch)
        yield _Forward(model, target, precision, batch, torch)


def _move_model(stack: ExitStack, model: Any, device: Any, torch: Any) -> Any:
    """The device of the inputs; a module on another device is moved there, and back afterwards."""
    tensors = [] if not hasattr(model, "parameters") else [*model.parameters(), *model.buffers()]
    devices = {t.device for t in tensors}
    if device is None:
        return next(iter(devices)) if devices else torch.device("cpu")
    target = torch.device(device)
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


def _autocast(autocast: Any, device: Any, torch: Any) -> Callable[[], Any]:
    if autocast is None or autocast is False:
        return nullcontext
    name = str(autocast).removeprefix("torch.")
    if name not in _PRECISIONS:
        raise UnknownNameError("value of autocast", autocast, _PRECISIONS)
    return lambda: torch.autocast(device.type, dtype=getattr(torch, name))


class _Forward:
    """One model on one device, called with NumPy indices."""

    def __init__(self, model: Any, device: Any, precision: Any, batch: int | None, torch: Any) -> None:
        self.model, self.device, self.precision, self.torch = model, device, precision, torch
        self.batch = batch

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
            out = torch.as_tensor(np.asarray(out)) if isinstance(out, np.ndarray) else out
        shapes: set[tuple[int, ...]] = {(n,), (n, 1)}
        if n == 1:
            shapes.add(())  # a module that ends in .squeeze() gives no dimension for a single pair
        if not isinstance(out, torch.Tensor) or tuple(out.shape) not in shapes:
            received = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
            raise InputError(
                f"{type(self.model).__name__} gave {received} for {n} pairs.",
                hint=f"A model gives one score per pair: shape ({n},) or ({n}, 1).",
            )
        flat = out.detach().reshape(-1)
        if flat.dtype in (torch.float16, torch.bfloat16):
            flat = flat.float()  # exact; NumPy has no bfloat16
        array: Array = flat.cpu().numpy()
        return array

    def _batch_size(self, users: Int, items: Int) -> int:
        """The number of pairs for which the outputs of all parts of the module fit into the memory budget."""
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
