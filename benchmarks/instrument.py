"""Time and peak memory of entropy and log-probs from logits: the plain form, TRL's, verl's and klinic's.

    python benchmarks/instrument.py [--shape 8,1024,32768] [--runs 3] [--only ours] [--chunk-rows 4]

Every form runs in a process of its own on one thread. Time is the fastest of the runs (others share the machine); extra memory is the
process's peak minus what it held with the logits alone. "+ backward" is the gradient of the log-probs, "+ both" of log-probs and
entropy, and the gradient of the logits, as large as they are, is in the memory. Needs the torch extra, and memory for about
nine times the logits (9 GiB).
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

FORMS = ("plain", "trl", "verl", "verl-chunked", "ours")
MODES = ("forward", "+ backward", "+ both")
TIME_LIMIT, MEMORY_LIMIT = 1.2, 1 / 3  # of the fastest other form; of the plain form's extra memory
KIB = 1024


def form(name: str, chunk_rows: int | None) -> Callable[[Any, Any, bool], tuple[Any, Any]]:
    """logits, ids, whether the entropy needs a gradient -> log-probs and entropy."""
    import torch

    def plain(logits: Any, ids: Any, both: bool) -> tuple[Any, Any]:
        logp = torch.log_softmax(logits.float(), -1).gather(-1, ids[..., None])[..., 0]
        with torch.set_grad_enabled(both):  # seed 000: four lines, where the log-probs are computed
            probs = torch.softmax(logits.float(), dim=-1)
            entropy = -(probs * torch.log(probs + 1e-10)).sum(-1)
        return logp, entropy

    def trl(logits: Any, ids: Any, both: bool) -> tuple[Any, Any]:
        from trl.trainer.utils import selective_log_softmax_and_entropy

        found: tuple[Any, Any] = selective_log_softmax_and_entropy(
            logits, ids, entropy_requires_grad=both
        )
        return found

    def verl(logits: Any, ids: Any, both: bool) -> tuple[Any, Any]:
        # Formulas of verl 0.9.1 without flash-attn: logprobs_from_logits_v2 and entropy_from_logits.
        picked = logits.gather(-1, ids[..., None])[..., 0]
        logp = picked - torch.stack([torch.logsumexp(row, -1) for row in logits])
        with torch.set_grad_enabled(both):
            probs = torch.softmax(logits, -1)
            entropy = torch.logsumexp(logits, -1) - (probs * logits).sum(-1)
        return logp, entropy

    def verl_chunked(logits: Any, ids: Any, both: bool) -> tuple[Any, Any]:
        # entropy_from_logits_with_chunking, 2048 rows
        picked = logits.gather(-1, ids[..., None])[..., 0]
        logp = picked - torch.stack([torch.logsumexp(row, -1) for row in logits])
        parts = []
        with torch.set_grad_enabled(both):
            for rows in logits.flatten(0, -2).split(2048):
                probs = torch.softmax(rows.float(), -1)
                parts.append(torch.logsumexp(rows.float(), -1) - (probs * rows.float()).sum(-1))
        return logp, torch.cat(parts).view(ids.shape)

    def ours(logits: Any, ids: Any, both: bool) -> tuple[Any, Any]:
        from klinic.instrument import logprobs_and_entropy

        return logprobs_and_entropy(logits, ids, entropy_grad=both, chunk_rows=chunk_rows)

    return {"plain": plain, "trl": trl, "verl": verl, "verl-chunked": verl_chunked, "ours": ours}[
        name
    ]


def peak() -> int:
    """Most memory this process ever held, KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def one(name: str, mode: str, shape: tuple[int, int, int], runs: int, rows: int | None) -> None:
    """Print seconds, extra KiB, and two sums that must agree between the forms."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    batch, length, vocabulary = shape
    logits = torch.randn(shape).mul_(3)
    ids = torch.randint(vocabulary, (batch, length))
    measure, both = form(name, rows), mode == "+ both"
    small, few = torch.randn(1, 4, 64, requires_grad=True), torch.zeros(1, 4, dtype=torch.long)
    sum(x.sum() for x in measure(small, few, True)).backward()  # imports and first-use costs
    before, best = peak(), float("inf")
    for _ in range(runs):
        logits.grad = None
        logits.requires_grad_(mode != "forward")
        start = time.perf_counter()
        logp, entropy = measure(logits, ids, both)
        if mode != "forward":
            (logp.sum() + (entropy.sum() if both else 0)).backward()
        best = min(best, time.perf_counter() - start)
    print(best, peak() - before, float(logp.mean()), float(entropy.mean()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shape", default="8,1024,32768")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", choices=FORMS)
    parser.add_argument("--chunk-rows", type=int)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    shape = tuple(int(n) for n in args.shape.split(","))
    if args.one:
        one(args.one[0], args.one[1], shape, args.runs, args.chunk_rows)
        return
    found: dict[tuple[str, str], tuple[float, float]] = {}
    print(f"{'':14}{'':12}{'seconds':>9}{'extra MiB':>11}   logp, entropy (mean)")
    for mode in MODES:
        for name in [args.only] if args.only else FORMS:
            command = [sys.executable, __file__, "--one", name, mode, "--shape", args.shape]
            command += ["--runs", str(args.runs)]
            command += ["--chunk-rows", str(args.chunk_rows)] if args.chunk_rows else []
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{name:14}{mode:12}failed: {done.stderr.strip().splitlines()[-1:]}")
                continue
            seconds, extra, logp, entropy = map(float, done.stdout.split())
            found[name, mode] = seconds, extra
            print(
                f"{name:14}{mode:12}{seconds:9.2f}{extra / KIB:11.0f}   {logp:.5f} {entropy:.5f}",
                flush=True,
            )
    for mode in MODES:
        others = [found[n, m][0] for n, m in found if m == mode and n != "ours"]
        if others and ("ours", mode) in found and ("plain", mode) in found:
            seconds, extra = found["ours", mode]
            time_share, memory_share = seconds / min(others), extra / found["plain", mode][1]
            kept = time_share <= TIME_LIMIT and memory_share <= MEMORY_LIMIT
            print(
                f"{mode}: {time_share:.2f} of the fastest other form's time, {memory_share:.3f} of the plain form's "
                f"extra memory: {'within' if kept else 'NOT within'} 1.2 and 1/3"
            )


if __name__ == "__main__":
    main()
