"""The instrument on torch tensors: log-probs and entropy with their gradients, TRL's and verl's formulas, two real ranks."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_instrument import batches, count_in, one_step, right_padded

from klinic import instrument as ins
from klinic.errors import BadUsage

torch = pytest.importorskip("torch", reason="the torch extra is not installed")
pytestmark = pytest.mark.torch
torch.set_num_threads(1)
FEW = settings(max_examples=40, deadline=None)


def naive(logits: Any, ids: Any, temperature: float = 1.0) -> tuple[Any, Any]:
    """In float64 and in full: what the chunks must equal."""
    log_probs = torch.log_softmax(logits.double() / temperature, -1)
    some = torch.where(log_probs.isinf(), 0.0, log_probs)
    return log_probs.gather(-1, ids[..., None])[..., 0], -(
        some.exp() * some * ~log_probs.isinf()
    ).sum(-1)


def close(a: Any, b: Any, rel: float = 1e-5, abs_: float = 1e-5) -> None:
    torch.testing.assert_close(a.double(), b.double(), rtol=rel, atol=abs_, equal_nan=True)


# Log-probs and entropy


@st.composite
def problems(draw: Any) -> tuple[Any, Any, Any, float, int]:
    """Logits (..., V) on any scale, ids, a mask or none, a temperature, rows a chunk."""
    shape = draw(st.sampled_from([(3,), (2, 5), (1, 1), (4, 7), (2, 2, 3)]))
    size = draw(st.integers(1, 50))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    logits = torch.randn(*shape, size, generator=generator, dtype=torch.float64)
    logits = logits * draw(st.sampled_from([0.0, 1.0, 30.0])) + draw(st.sampled_from([0.0, 1e4]))
    ids = torch.randint(size, shape, generator=generator)
    mask = torch.rand(shape, generator=generator) < 0.6 if draw(st.booleans()) else None
    return logits, ids, mask, draw(st.sampled_from([1.0, 0.6, 2.0])), draw(st.integers(1, 9))


@FEW
@given(problems())
def test_log_probs_entropy_and_gradients_are_those_of_the_naive_form(problem: Any) -> None:
    logits, ids, mask, temperature, rows = problem
    keep = torch.ones(ids.shape) if mask is None else mask.double()
    weights = torch.linspace(-1, 2, ids.numel(), dtype=torch.float64).view(ids.shape)
    logits.requires_grad_()
    logp, entropy = ins.logprobs_and_entropy(
        logits, ids, mask, temperature=temperature, entropy_grad=True, chunk_rows=rows
    )
    want_logp, want_entropy = naive(logits, ids, temperature)
    close(logp, want_logp * keep, 1e-9, 1e-9)
    close(entropy, want_entropy * keep, 1e-9, 1e-9)
    (got,) = torch.autograd.grad((logp * weights + 0.3 * entropy).sum(), logits)
    (want,) = torch.autograd.grad(((want_logp * weights + 0.3 * want_entropy) * keep).sum(), logits)
    close(got, want, 1e-9, 1e-9)


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float16"])
def test_other_number_types_are_summed_in_float32(kind: str) -> None:
    torch.manual_seed(0)
    logits = (torch.randn(2, 6, 5000) * 3).to(getattr(torch, kind)).requires_grad_()
    ids = torch.randint(5000, (2, 6))
    logp, entropy = ins.logprobs_and_entropy(logits, ids, entropy_grad=True)
    assert logp.dtype == entropy.dtype == torch.float32
    want_logp, want_entropy = naive(logits, ids)
    close(logp, want_logp)
    close(entropy, want_entropy)
    (got,) = torch.autograd.grad((logp + entropy).sum(), logits)
    (want,) = torch.autograd.grad((want_logp + want_entropy).sum(), logits)
    assert got.dtype == logits.dtype
    close(got, want, 1e-2 if kind != "float32" else 1e-4, 1e-6)


def test_autograd_agrees_by_finite_differences() -> None:
    torch.manual_seed(0)
    logits = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    ids, mask = torch.randint(4, (2, 3)), torch.tensor([[1, 1, 0], [0, 1, 1]])
    assert torch.autograd.gradcheck(
        lambda x: ins.logprobs_and_entropy(x, ids, mask, temperature=0.7, entropy_grad=True), logits
    )


def test_the_entropy_is_only_watched_unless_its_gradient_is_asked_for() -> None:
    logits, ids = torch.randn(1, 3, 5, requires_grad=True), torch.zeros(1, 3, dtype=torch.long)
    logp, entropy = ins.logprobs_and_entropy(logits, ids)
    assert logp.requires_grad and not entropy.requires_grad
    with torch.no_grad():
        assert not ins.logprobs_and_entropy(logits, ids)[0].requires_grad


def test_a_slice_over_positions_is_not_copied() -> None:
    from klinic.instrument.logits import _blocks

    torch.manual_seed(0)
    full = torch.randn(3, 6, 7, requires_grad=True)
    ids = torch.randint(7, (3, 6))
    blocks = list(_blocks(full[:, :-1]))
    assert [b.data_ptr() for b in blocks] == [row.data_ptr() for row in full]
    logp, entropy = ins.logprobs_and_entropy(full[:, :-1], ids[:, 1:], entropy_grad=True)
    want_logp, want_entropy = naive(full[:, :-1], ids[:, 1:])
    close(logp, want_logp)
    (got,) = torch.autograd.grad((logp + entropy).sum(), full)
    (want,) = torch.autograd.grad((want_logp + want_entropy).sum(), full)
    close(got, want)


def test_tokens_ruled_out_and_broken_rows() -> None:
    inf = math.inf
    logits = torch.tensor([[0.0, -inf, 0.0], [-inf] * 3, [0.0, math.nan, 0.0], [9e4, 0.0, 0.0]])
    logits.requires_grad_()
    ids = torch.zeros(4, dtype=torch.long)
    logp, entropy = ins.logprobs_and_entropy(logits, ids, entropy_grad=True)
    close(logp, torch.tensor([-math.log(2), math.nan, math.nan, 0.0]))
    close(entropy, torch.tensor([math.log(2), math.nan, math.nan, 0.0]))
    (entropy[0] * 5 + logp[0] + entropy[3] + logp[3]).backward()
    close(logits.grad[[0, 3]], torch.tensor([[0.5, 0, -0.5], [0, 0, 0]]))
    ruled_out, _ = ins.logprobs_and_entropy(logits[:1], torch.ones(1, dtype=torch.long))
    assert ruled_out.item() < -1e29  # the sampler cannot have drawn it


def test_ids_that_mean_nothing_outside_the_mask_are_not_looked_up() -> None:
    logits = torch.randn(1, 4, 9, requires_grad=True)
    ids, mask = torch.tensor([[-100, 3, 4, -100]], dtype=torch.int32), torch.tensor([[0, 1, 1, 0]])
    logp, _ = ins.logprobs_and_entropy(logits, ids, mask)
    assert logp[0, [0, 3]].tolist() == [0, 0]
    close(logp[0, 1:3], logits.log_softmax(-1)[0, [1, 2], [3, 4]])
    logp.sum().backward()
    assert not logits.grad[0, [0, 3]].any() and logits.grad[0, [1, 2]].all()


def test_autocast_does_not_lower_the_sums() -> None:
    torch.manual_seed(0)
    logits, ids = torch.randn(2, 4, 3000) * 3, torch.randint(3000, (2, 4))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logp, entropy = ins.logprobs_and_entropy(logits, ids)
    want_logp, want_entropy = naive(logits, ids)
    close(logp, want_logp)
    close(entropy, want_entropy)


def test_what_does_not_fit_is_said() -> None:
    logits, ids = torch.zeros(2, 5, 7), torch.zeros(2, 5, dtype=torch.long)
    with pytest.raises(BadUsage, match="do not fit ids"):
        ins.logprobs_and_entropy(logits, ids[:, 1:])
    with pytest.raises(BadUsage, match="mask"):
        ins.logprobs_and_entropy(logits, ids, ids[:, 1:])
    with pytest.raises(BadUsage, match="temperature 0"):
        ins.logprobs_and_entropy(logits, ids, temperature=0)
    for rows in (0, 2):
        empty = ins.logprobs_and_entropy(torch.zeros(rows, 0, 7), torch.zeros(rows, 0).long())
        assert empty[0].shape == empty[1].shape == (rows, 0)


# Other libraries


@FEW
@given(problems())
def test_trl(problem: Any) -> None:
    trl = pytest.importorskip("trl.trainer.utils")
    logits, ids, mask, temperature, _ = problem
    if logits.ndim != 3:
        return
    logits = logits.float()
    got = ins.logprobs_and_entropy(logits, ids, mask, temperature=temperature, entropy_grad=True)
    want = trl.selective_log_softmax_and_entropy(logits, ids, True, temperature, mask)
    close(
        got[0], want[0], 1e-4, 2e-3
    )  # logits near 10,000 leave float32 three digits after the point
    close(got[1], want[1], 1e-4, 2e-3)


def test_in_bfloat16_trl_sums_the_vocabulary_in_bfloat16() -> None:
    trl = pytest.importorskip("trl.trainer.utils")
    torch.manual_seed(0)
    logits = (torch.randn(1, 8, 30_000) * 2).bfloat16()
    ids = torch.randint(30_000, (1, 8))
    want_logp, want_entropy = naive(logits, ids)
    logp, entropy = ins.logprobs_and_entropy(logits, ids)
    close(entropy, want_entropy, 1e-5)
    theirs = trl.entropy_from_logits(logits).double()
    # TRL is off by up to 2 % on single tokens: bfloat16 has three digits.
    assert (theirs - want_entropy).abs().max() > 100 * (entropy - want_entropy).abs().max()
    theirs = trl.selective_log_softmax(logits, ids).double()
    assert (theirs - want_logp).abs().max() > 100 * (logp - want_logp).abs().max()


def test_verls_logits_formulas() -> None:
    torch.manual_seed(0)
    logits, ids = torch.randn(2, 5, 300) * 3, torch.randint(300, (2, 5))
    logp, entropy = ins.logprobs_and_entropy(logits, ids)
    # verl 0.9.1 torch_functional: entropy_from_logits, logprobs_from_logits_v2
    close(entropy, logits.logsumexp(-1) - (logits.softmax(-1) * logits).sum(-1))
    close(logp, logits.gather(-1, ids[..., None])[..., 0] - logits.logsumexp(-1))
    # Its formula multiplies probability 0 by -inf where a token is ruled out; the entropy is then NaN, and ours is not.
    logits[0, 0, 3] = -math.inf
    assert (logits.logsumexp(-1) - (logits.softmax(-1) * logits).sum(-1))[0, 0].isnan()
    close(ins.logprobs_and_entropy(logits, ids)[1], naive(logits, ids)[1])


def verl_mean(values: Any, mask: Any) -> Any:
    """verl 0.9.1 masked_mean."""
    return (torch.where(mask.bool(), values, 0.0) * mask).sum() / (mask.sum() + 1e-8)


@FEW
@given(batches())
def test_verls_masked_numbers(batch: Any) -> None:
    values, mask = torch.tensor(batch[0]), torch.tensor(batch[1]).double()
    got = ins.masked_mean(values, mask)
    if not mask.any():
        assert (
            got.isnan() and verl_mean(values, mask) == 0
        )  # theirs: an entropy of 0 for a step without tokens
        return
    close(got, verl_mean(values, mask), 1e-7)
    if mask.sum() > 1:
        clean = torch.where(mask.bool(), values, 0.0)
        biased = verl_mean((clean - verl_mean(clean, mask)) ** 2, mask)
        n = mask.sum()
        # masked_var has Bessel's correction, so masked_whiten gives a std of sqrt((n - 1) / n); ours gives 1 unless asked.
        var = biased * n / (n - 1)
        close(ins.masked_std(values, mask, ddof=1) ** 2, var, 1e-6)
        whitened = (clean - verl_mean(clean, mask)) * torch.rsqrt(var + 1e-8)
        if (
            var > 1e-3
        ):  # 1e-8 beside the variance and 1e-8 beside the std are not the same where nothing differs
            close(ins.whiten(values, mask, ddof=1), whitened * mask, 1e-4)
            close(ins.masked_std(ins.whiten(values, mask), mask), torch.tensor(1.0), 1e-6)


@FEW
@given(batches())
def test_verls_kl_penalty_and_clip_fraction(batch: Any) -> None:
    values, keep, rng = batch
    mask = torch.tensor(keep)
    new = torch.tensor(np.where(keep, values, 0.0))
    old = new + torch.tensor(rng.normal(0, 0.4, keep.shape))
    advantages = torch.tensor(rng.normal(size=keep.shape))
    # core_algos.kl_penalty_forward: k1, mse, low_var_kl (cut at 10; the values here stay below)
    d = old - new
    close(ins.k1(new, old, mask), (new - old) * mask, 1e-9)
    close(ins.k2(new, old, mask), 0.5 * (new - old).square() * mask, 1e-9)
    close(ins.k3(new, old, mask), (d.exp() - d - 1).clamp(-10, 10) * mask, 1e-9)
    # core_algos.compute_policy_loss_vanilla: pg_clipfrac, ppo_kl, pg_clipfrac_lower with c = 3
    ratio = (new - old).exp()
    plain, cut = -advantages * ratio, -advantages * ratio.clamp(0.8, 1.28)
    worst = torch.maximum(plain, cut)
    found = ins.clipping(ins.ratio(new, old, mask), advantages, 0.2, 0.28, dual=3.0)
    assert (found.active & mask).equal((cut > plain) & mask)
    assert (found.dual & mask).equal((worst > -advantages * 3) & (advantages < 0) & mask)
    if mask.any():
        close(ins.kl_token_mean(old, new, mask, "k1"), verl_mean(-(new - old), mask.double()), 1e-7)
        # TRL's clip_ratio/region_mean
        low, high = (ratio < 0.8) & (advantages < 0), (ratio > 1.28) & (advantages > 0)
        close(
            ins.masked_mean(found.active, mask),
            verl_mean((low | high).double(), mask.double()),
            1e-6,
        )
        # The arithmetic mean is what trainers log as ratio_mean; the geometric one is exp(-ppo_kl), never above it.
        geometric = ins.ratio_geo_mean(new, old, mask)
        close(geometric, torch.exp(-verl_mean(old - new, mask.double())), 1e-7)
        assert geometric <= ins.ratio_mean(new, old, mask) + 1e-12


def test_verls_gae() -> None:
    rng = np.random.default_rng(0)
    keep = right_padded(rng, 4, 8)
    keep[0] = [1, 1, 0, 0, 1, 1, 0, 0]  # a tool wrote in between
    mask = torch.tensor(keep).double()
    rewards, values = (torch.tensor(rng.normal(size=keep.shape)) * mask for _ in range(2))
    got, returns = ins.gae(rewards, values, mask, 0.98, 0.9)
    following = running = torch.zeros(4, dtype=torch.float64)
    columns = []
    for t in range(7, -1, -1):  # core_algos.compute_gae_advantage_return, before it whitens
        m = mask[:, t]
        new = rewards[:, t] + 0.98 * following - values[:, t] + 0.98 * 0.9 * running
        following = values[:, t] * m + (1 - m) * following
        running = new * m + (1 - m) * running
        columns.append(running)
    theirs = torch.stack(columns[::-1], 1)
    close(got, theirs * mask, 1e-9)  # theirs repeats an advantage on tokens outside the mask
    close(returns, (theirs + values) * mask, 1e-9)


def test_trls_truncation_and_verls() -> None:
    ids = torch.tensor([[5, 5, 2], [5, 5, 5], [5, 2, 0]])
    mask = torch.tensor([[1, 1, 1], [1, 1, 1], [1, 1, 0]])
    ended = ins.ended(ids, mask, 2)
    assert ended.tolist() == [True, False, True]
    # TRL's clipped_ratio is 1 minus this; verl's response_length/clip_ratio counts whatever is as long as the longest may be,
    # and so the first row, which ended with the last token there was room for.
    assert ins.at_cap(mask, 3).tolist() == (mask.sum(-1) == 3).tolist() == [True, True, False]


# One definition for NumPy and torch


@FEW
@given(batches())
def test_numpy_and_torch_agree(batch: Any) -> None:
    a, keep, rng = batch
    b = np.where(keep, rng.normal(size=a.shape), np.nan)
    ids = rng.integers(0, 3, a.shape)
    rewards, names = rng.integers(0, 2, len(a)).astype(float), rng.integers(0, 3, len(a))
    cap = a.shape[1]

    def numbers(a: Any, b: Any, mask: Any, ids: Any, rewards: Any, names: Any) -> list[Any]:
        ratio = ins.ratio(a, b, mask)
        return [
            ins.masked_mean(a, mask),
            ins.masked_mean(a, mask, 1),
            ins.masked_sum(a, mask, 1),
            ins.masked_std(a, mask),
            ins.whiten(a, mask),
            ins.masked_quantiles(a, mask, [0.1, 0.9]),
            ins.correlation(a, b, mask),
            *ins.by_relative_position(a, mask),
            *ins.by_position(a, mask).values(),
            *(ins.kl_token_mean(a, b, mask, k) for k in ("k1", "k2", "k3", "abs")),
            ins.kl_seq_sum(a, b, mask),
            ins.ratio_mean(a, b, mask),
            ins.ratio_geo_mean(a, b, mask),
            ins.ess_fraction(ratio, mask),
            *ins.clipping(ratio, a, 0.2, 0.2, 3.0),
            ins.outside_band(ratio, mask, 0.2, 0.2),
            ins.group_advantages(rewards, names),
            ins.zero_std_share(rewards, names),
            ins.all_right_share(rewards, names),
            ins.all_wrong_share(rewards, 1),
            ins.at_last_token(rewards, mask),
            *ins.gae(a, b, mask, 0.9, 0.8),
            ins.explained_variance(a, b, mask),
            *ins.returns_against_values(a, b, mask).values(),
            ins.lengths(mask),
            ins.ended(ids, mask, [1, 2]),
            ins.at_cap(mask, cap),
            ins.unique_share(ids, mask, names),
            ins.entropy_of(ins.log_softmax(b)),
        ]

    arrays = a, b, keep, ids, rewards, names
    for x, y in zip(numbers(*arrays), numbers(*map(torch.tensor, arrays)), strict=True):
        torch.testing.assert_close(
            torch.as_tensor(np.asarray(x)).double(),
            torch.as_tensor(y).double(),
            rtol=1e-6,
            atol=1e-9,
            equal_nan=True,
        )


def test_gradients_pass_and_padding_sends_none() -> None:
    values = torch.tensor([[1.0, 2.0, math.nan], [3.0, -math.inf, 5.0]], requires_grad=True)
    mask, zeros = torch.tensor([[1, 1, 0], [1, 0, 1]]), torch.zeros(2, 3)
    weights = torch.arange(6.0).view(2, 3)
    for f in (
        lambda v: ins.masked_mean(v, mask),
        lambda v: ins.masked_std(v, mask),
        lambda v: (ins.whiten(v, mask) * weights).sum(),
        lambda v: ins.kl_token_mean(v, zeros, mask),
        lambda v: ins.kl_seq_sum(v, zeros, mask),
        lambda v: ins.ratio_mean(v, zeros, mask),
        lambda v: ins.ratio_geo_mean(v, zeros, mask),
    ):
        (got,) = torch.autograd.grad(f(values), values)
        assert got.isfinite().all() and got[mask == 1].any() and not got[mask == 0].any()


# Merging


def tensors(batch: dict[str, Any]) -> dict[str, Any]:
    return {name: torch.tensor(values) for name, values in batch.items()}


def rank_main(rank: int, meeting: str, results: str) -> None:
    """One of two ranks: its micro-batches of different sizes, one of them without responses, then all_reduce."""
    sys.path.insert(0, str(Path(__file__).parent))
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    batch = tensors(one_step(np.random.default_rng(0)))
    step = ins.Step()
    parts = [(0, 3, 0, 4), (3, 4, 4, 4)] if rank == 0 else [(4, 11, 4, 12), (11, 16, 12, 16)]
    for first, last, group, end in parts:
        count_in(step, batch, slice(first, last), slice(group, end))
    if rank == 1:
        step.add("only/here", torch.tensor([1.0, 2.0]))
    step.all_reduce()
    torch.save(step.results(), f"{results}/{rank}.pt")
    dist.destroy_process_group()


def test_micro_batches_on_two_ranks_are_the_whole_batch(tmp_path: Path) -> None:
    torch.multiprocessing.spawn(rank_main, (str(tmp_path / "meet"), str(tmp_path)), nprocs=2)
    first, second = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in (0, 1))
    assert first == second  # to the last bit
    assert first.pop("only/here") == 1.5
    whole = ins.Step()
    count_in(whole, one_step(np.random.default_rng(0)), slice(None), slice(None))
    want = whole.results()
    assert first == pytest.approx(want, rel=1e-9, abs=1e-12)
    exact = [
        k for k in want if k.endswith(("min", "max", "count", "p01", "p10", "p50", "p90", "p99"))
    ]
    assert len(exact) > 15 and all(first[k] == want[k] for k in exact)


def test_a_plain_loop() -> None:
    """REINFORCE in groups of four on a table of logits: as in docs/instrument.md, and it learns to stop at once."""
    torch.manual_seed(0)
    table = torch.nn.Embedding(6, 6)
    torch.nn.init.zeros_(table.weight)
    optimizer = torch.optim.Adam(table.parameters(), 0.3)
    logged = []
    for _ in range(12):
        ids = torch.zeros(16, 6, dtype=torch.long)
        with torch.no_grad():
            for t in range(1, 6):
                ids[:, t] = torch.multinomial(table(ids[:, t - 1]).softmax(-1), 1)[:, 0]
        after_end = ((ids == 5).cumsum(-1) - (ids == 5).long()) > 0
        mask = ~after_end[:, 1:]
        rewards = -ins.lengths(mask).float()
        advantages = ins.group_advantages(rewards, 4)[:, None].expand(-1, 5)
        step = ins.Step()
        for rows in torch.arange(16).split(6):
            logits = table(ids[rows])[:, :-1]
            logp, entropy = ins.logprobs_and_entropy(logits, ids[rows, 1:], mask[rows])
            (-(logp * advantages[rows]).sum() / mask.sum()).backward()
            step.policy(
                mask[rows], logp, old=logp.detach(), entropy=entropy, advantages=advantages[rows]
            )
        step.responses(mask, rewards=rewards, groups=4, ids=ids[:, 1:], eos=5, cap=5)
        step.all_reduce()
        logged.append(step.results())
        optimizer.step()
        optimizer.zero_grad()
    first, last = logged[0], logged[-1]
    assert first["entropy/token_mean/response_only"] == pytest.approx(math.log(6))
    assert last["entropy/token_mean/response_only"] < first["entropy/token_mean/response_only"]
    assert last["len/response_mean"] < first["len/response_mean"]
    assert last["ratio_mean/new_over_old/token_mean"] == 1
    assert last["clip_frac/token_mean/active"] == 0


def test_without_ranks_all_reduce_does_nothing() -> None:
    step = ins.Step()
    step.add("a", torch.ones(3))
    step.all_reduce()
    assert step.results() == {"a": 1.0}
