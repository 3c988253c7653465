"""NCF's leave-one-out test: 6,040 cases of 1 positive and 99 negatives, against the loop over cases.

Three claims: counting and two metrics from scores that are there, in milliseconds; GMF-8 from end to end
against one forward pass and one heap per case, as the protocol is usually written (both give the same
numbers, checked before timing); and how much of it on a GPU is the forward pass. Memory is the growth of
the peak of a process that does nothing else. Needs PyTorch and NumPy alone.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import os
import platform
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import timed

from recsys.cf.evaluation.ncf_evaluator import NCFEvaluator
from recsys.evaluation.candidates import Candidates, evaluate_candidates
from recsys.models import GMF

N_USERS, N_ITEMS, N_NEGATIVES, K = 6040, 3706, 99, 10


def world(seed: int = 1) -> tuple[GMF, Candidates]:
    """A model with scores that spread, and cases without repeats."""
    rng = np.random.default_rng(seed)
    every = np.arange(N_ITEMS)
    drawn = np.stack(
        [rng.choice(every, 1 + N_NEGATIVES, replace=False, shuffle=False) for _ in range(N_USERS)]
    )
    model = GMF(N_USERS, N_ITEMS, factors=8)
    with torch.no_grad():
        model.users.weight.mul_(100)
        model.items.weight.mul_(100)
    return model, Candidates.of(np.arange(N_USERS), drawn[:, 0], drawn[:, 1:])


def loop(model: GMF, cases: list[tuple[torch.Tensor, int, torch.Tensor]], device: str) -> tuple[list, list]:
    """One forward pass, one dict and one heap per case."""
    model.eval()
    hits, ndcgs = [], []
    with torch.no_grad():
        for user, positive, negatives in cases:
            items = torch.cat((torch.tensor([positive]), negatives)).to(device)
            users = user.repeat(len(items)).to(device)
            scores = model(users, items).cpu().numpy()
            by_item = dict(zip(items.tolist(), scores.tolist(), strict=True))
            best = heapq.nlargest(K, by_item, key=by_item.get)
            hits.append(float(positive in best))
            ndcgs.append(math.log(2) / math.log(best.index(positive) + 2) if positive in best else 0.0)
    return hits, ndcgs


def given_scores(rounds: int) -> dict[str, float]:
    _, cases = world()
    scores = np.random.default_rng(2).random((N_USERS, 1 + N_NEGATIVES), dtype=np.float32)
    return timed(lambda: evaluate_candidates(scores, cases, ["hit@10", "ndcg@10"]), rounds)


def end_to_end(device: str, rounds: int) -> dict[str, Any]:
    model, cases = world()
    model.to(device)
    rows = [
        (torch.tensor(int(u)), int(i), torch.from_numpy(n))
        for u, i, n in zip(cases.users, cases.items, cases.negatives.reshape(-1, N_NEGATIVES), strict=True)
    ]
    ours = NCFEvaluator(model, cases, top_k=K, device=device)
    if not np.allclose(ours.evaluate(), loop(model, rows, device), atol=1e-12):
        raise SystemExit("the loop and the evaluator disagree")
    found: dict[str, Any] = {"evaluator": timed(ours.evaluate, rounds), "loop": timed(
        lambda: loop(model, rows, device), max(1, rounds // 5))}  # fmt: skip
    found["times faster"] = {
        name: found["loop"][name] / found["evaluator"][name] for name in ("wall_s", "best_s", "cpu_s")
    }
    return found


def forward_share(device: str, rounds: int) -> dict[str, float]:
    """The evaluation of a larger network, and its forward passes alone with everything on the device."""
    from recsys.models import NeuMF

    _, cases = world()
    model = NeuMF(N_USERS, N_ITEMS, factors=64, layers=(1024, 512, 256, 64)).to(device).eval()
    evaluator = NCFEvaluator(model, cases, top_k=K, device=device)
    users = torch.as_tensor(np.repeat(cases.users, N_NEGATIVES + 1), device=device)
    items = np.c_[cases.items, cases.negatives.reshape(-1, N_NEGATIVES)].reshape(-1)
    items = torch.as_tensor(items, device=device)

    def forward() -> None:
        with torch.inference_mode():
            for at in range(0, len(users), 1 << 17):
                model(users[at : at + (1 << 17)], items[at : at + (1 << 17)])
        if device == "cuda":
            torch.cuda.synchronize()

    forward()
    evaluator.evaluate()
    whole, alone = timed(evaluator.evaluate, rounds), timed(forward, rounds)
    return {"evaluator_s": whole["wall_s"], "forward_s": alone["wall_s"],
            "share": alone["wall_s"] / whole["wall_s"]}  # fmt: skip


def memory() -> dict[str, float]:
    """The growth of the peak over one evaluation, in a process of its own (Linux)."""
    code = (
        "import re, sys, pathlib; sys.path.insert(0, sys.argv[1]); import ncf, torch\n"
        "status = lambda name: int(re.search(name + r':\\s+(\\d+)', "
        "pathlib.Path('/proc/self/status').read_text())[1])\n"
        "model, cases = ncf.world()\n"
        "some = torch.zeros(4, dtype=torch.long)\n"
        "with torch.inference_mode(): model(some, some)\n"
        "evaluator = ncf.NCFEvaluator(model, cases, top_k=10)\n"
        "pathlib.Path('/proc/self/clear_refs').write_text('5')\n"  # the peak begins anew
        "before = status('VmRSS')\n"
        "evaluator.evaluate()\n"
        "print((status('VmHWM') - before) / 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parent)], capture_output=True, text=True, check=True
    )
    return {"peak_growth_mb": float(done.stdout)}


def machine(device: str) -> dict[str, Any]:
    return {
        "cpu": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "threads": torch.get_num_threads(),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    report: dict[str, Any] = {
        "workload": {"cases": N_USERS, "items": N_ITEMS, "negatives": N_NEGATIVES, "model": "GMF-8"},
        "given scores": given_scores(args.rounds),
        "GMF-8 end to end": end_to_end(args.device, args.rounds),
        "memory": memory(),
    }
    if args.device == "cuda":
        report["NeuMF-64 on the GPU"] = forward_share(args.device, args.rounds)
    report["machine"] = machine(args.device)
    name = "ncf.json" if args.device == "cpu" else "ncf_gpu.json"
    target = args.out or Path(__file__).parent / "results" / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
