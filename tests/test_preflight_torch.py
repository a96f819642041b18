"""Preflight with a real model and real tokenizers: planted bugs are caught, sound code passes, and the model stays as it was."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from klinic.preflight import Batch, preflight

torch = pytest.importorskip("torch", reason="the torch extra is not installed")
transformers = pytest.importorskip("transformers", reason="the torch extra is not installed")
pytestmark = pytest.mark.torch
torch.set_num_threads(1)

PAD, BOS, EOS, VOCABULARY = 0, 1, 2, 48
PROMPTS, ANSWERS, CAP = (3, 5, 4, 5), (6, 3, 7, 5), 7


def new_model(seed=0):
    torch.manual_seed(seed)
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=32, n_embd=32, n_layer=2, n_head=2, bos_token_id=BOS, eos_token_id=EOS, pad_token_id=PAD,
        initializer_range=0.2,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config).eval()


@pytest.fixture
def model():
    return new_model()


def layout():
    rng = np.random.default_rng(0)
    ids = torch.tensor(rng.integers(5, VOCABULARY, (4, 5 + CAP)))
    mask = torch.zeros_like(ids)
    for row, (prompt, answer) in enumerate(zip(PROMPTS, ANSWERS, strict=True)):
        ids[row, : 5 - prompt], ids[row, 5 + answer :], ids[row, 5 - prompt] = PAD, PAD, BOS
        mask[row, 5 : 5 + answer] = 1
        if answer < CAP:
            ids[row, 4 + answer] = EOS
    return ids, mask


def log_probs(model, ids, positions=True, temperature=1.0):
    """As a training loop has it: one padded batch, position ids from the attention mask."""
    attention = (ids != PAD).long()
    places = (attention.cumsum(1) - 1).clamp(min=0) if positions else None
    scores = model(input_ids=ids, attention_mask=attention, position_ids=places).logits[:, :-1]
    return (scores / temperature).log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]


def sound(model, **changes):
    ids, mask = layout()
    with torch.no_grad():
        logp = log_probs(model, ids)
    fields = {"ids": ids, "mask": mask, "prompt_lengths": torch.tensor(PROMPTS), "pad": PAD, "eos": EOS, "bos": BOS, "logp": logp,
              "old": logp, "reference": logp, "advantages": torch.tensor([1.0, -1.0, -0.5, 0.5])}  # fmt: skip
    return Batch(**fields | changes)


def grpo(batch, sign=1.0):
    """A clipped surrogate of the batch, as a function of the model."""

    def loss(model):
        ids, keep = batch.ids, batch.mask[:, 1:].bool()
        ratio = (log_probs(model, ids) - batch.old).exp()
        gain = batch.advantages[:, None]
        return -sign * torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain)[keep].mean()

    return loss


def found(name, batch, **more):
    (result,) = preflight(batch, only=[name], **more).results
    return result


MODEL_CHECKS = {
    "old-logprobs",
    "reference-logprobs",
    "kl-at-start",
    "first-ratio",
    "gradient",
    "overfit",
}


def test_a_sound_loop_passes_and_the_model_stays_as_it_was(model):
    model.train()
    model.transformer.h[0].eval()
    modes = [m.training for m in model.modules()]
    before, batch = copy.deepcopy(model.state_dict()), sound(new_model())
    reference, random = new_model(), torch.random.get_rng_state()
    report = preflight(batch, model=model, reference_model=reference, loss=grpo(batch))
    assert {r.name for r in report.results if r.status == "passed"} >= MODEL_CHECKS, str(report)
    assert not report.failed
    assert all(torch.equal(a, before[name]) for name, a in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert [m.training for m in model.modules()] == modes
    assert not preflight(batch, model=model, reference_model=reference).failed  # by likelihood
    assert torch.equal(random, torch.random.get_rng_state())


def test_the_model_alone_gives_what_was_not_handed_over(model):
    batch = sound(model, logp=None, old=None, reference=None)
    report = preflight(batch, model=model, reference_model=new_model(), skip=["overfit"])
    assert found("kl-at-start", batch, model=model, reference_model=new_model(1)).status == "failed"
    assert {r.name for r in report.results if r.status == "passed"} >= {"kl-at-start", "gradient"}


def planted_log_probs(model):
    ids, _ = layout()
    with torch.no_grad():
        yield (
            "differ",
            log_probs(model, ids, positions=False),
            {},
        )  # padding on the left moves the positions
        yield "differ", log_probs(copy.deepcopy(model).train(), ids), {}  # dropout
        yield "differ", log_probs(new_model(1), ids), {}
        yield "differ", log_probs(model, ids).roll(1, 0), {}  # rows exchanged
        yield "shifted", log_probs(model, ids).roll(-1, 1), {}
        yield "temperature", log_probs(model, ids), {"temperature": 0.7}
        yield "differ", torch.full((4, 4 + CAP), float("nan")), {}


def test_wrong_old_and_reference_log_probs_are_caught_and_explained(model):
    torch.manual_seed(0)
    for sentence, logp, changes in planted_log_probs(model):
        for name, one in (("old", {"model": model}), ("reference", {"reference_model": model})):
            result = found(f"{name}-logprobs", sound(model, **{name: logp}, **changes), **one)
            assert (result.status, result.sentence) == ("failed", sentence), (
                name,
                sentence,
                result,
            )
    warm = log_probs(model, layout()[0], temperature=0.7).detach()
    assert (
        found("old-logprobs", sound(model, old=warm, temperature=0.7), model=model).status
        == "passed"
    )


def test_16_bit_noise_is_no_bug(model):
    rough = copy.deepcopy(model).bfloat16()
    batch = sound(model)
    assert found("old-logprobs", batch, model=rough).status == "passed"
    assert found("old-logprobs", sound(model, old=batch.old + 0.05), model=rough).status == "failed"


# Tokenizers


def new_tokenizer(merges=60, template="{% for m in messages %}<s>{{ m.content }}</s>{% endfor %}"):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer, bpe.decoder = (
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoders.ByteLevel(),
    )
    trainer = trainers.BpeTrainer(vocab_size=259 + merges, special_tokens=["<pad>", "<s>", "</s>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())  # fmt: skip
    bpe.train_from_iterator(["the answer is the answer, so then the seven"] * 3, trainer)
    wrapped = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )
    wrapped.chat_template = template
    return wrapped


def test_tokenizers_and_templates_that_differ_are_caught():
    mine = new_tokenizer()
    special = new_tokenizer()
    special.eos_token = "<pad>"
    lower = new_tokenizer()
    from tokenizers import normalizers

    lower.backend_tokenizer.normalizer = normalizers.Lowercase()
    for sentence, other in (
        ("vocabulary", new_tokenizer(merges=8)),
        ("special", special),
        ("encoding", lower),
        (
            "template",
            new_tokenizer(template="{% for m in messages %}{{ m.content }}\n{% endfor %}"),
        ),
        ("template", new_tokenizer(template=None)),
    ):
        result = found("tokenizers", Batch(), tokenizer=mine, reference_tokenizer=other)
        assert (result.status, result.sentence) == ("failed", sentence)
    assert (
        found("tokenizers", Batch(), tokenizer=mine, reference_tokenizer=new_tokenizer()).status
        == "passed"
    )


def test_responses_that_do_not_survive_their_text_are_caught():
    tokenizer = new_tokenizer()
    good = tokenizer.encode("the answer is the seven</s>")
    torn = [
        t for letter in "the answer" for t in tokenizer.encode(letter)
    ]  # sampled letter by letter
    half = tokenizer.encode("é")[:1]  # cut off within a character
    width = max(map(len, (good, torn)))
    ids = torch.tensor([row + [0] * (width - len(row)) for row in (good, torn, half)])
    mask = (ids != 0).long()
    ids, mask = (torch.nn.functional.pad(a, (1, 0), value=v) for a, v in ((ids, BOS), (mask, 0)))
    result = found("retokenisation", Batch(ids=ids, mask=mask), tokenizer=tokenizer)
    assert (result.status, result.sentence) == ("failed", "drift")
    assert (result.values["rows"], result.values["of"]) == (1, 2)
    assert (
        found("retokenisation", Batch(ids=ids[:1], mask=mask[:1]), tokenizer=tokenizer).status
        == "passed"
    )


def test_a_tokenizer_that_reads_beginnings_otherwise_is_no_drift():
    from tokenizers import decoders, pre_tokenizers

    tokenizer = (
        new_tokenizer()
    )  # as sentencepiece has it: a blank before each text, taken away again
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.backend_tokenizer.decoder = decoders.Sequence(
        [decoders.ByteLevel(), decoders.Strip(" ", 1, 0)]
    )
    row = tokenizer.encode("so then the seven")
    tail = tokenizer.encode("qz")[1:]
    ids = torch.tensor([row + tail])
    mask = torch.tensor([[0] * len(row) + [1] * len(tail)])
    more = {"ids": ids, "mask": mask}
    assert found("retokenisation", Batch(**more, pad=-1), tokenizer=tokenizer).status == "passed"
    assert (
        found("retokenisation", Batch(**more, attention=mask), tokenizer=tokenizer).sentence
        == "drift"
    )


# Gradient and overfitting


class Adapted(torch.nn.Module):
    """A frozen embedding with LoRA's pair beside it: the second matrix begins at 0, so the first has no gradient yet."""

    def __init__(self, cut=False):
        super().__init__()
        torch.manual_seed(0)
        self.base = torch.nn.Embedding(VOCABULARY, VOCABULARY).requires_grad_(False)
        self.first = torch.nn.Parameter(torch.randn(VOCABULARY, 4))
        self.second = torch.nn.Parameter(torch.zeros(4, VOCABULARY))
        self.cut = cut

    def forward(self, ids):
        low = self.first[ids]
        return self.base(ids) + (low.detach() if self.cut else low) @ self.second


def test_a_parameter_without_a_gradient_is_caught():
    batch = sound(new_model())
    assert found("gradient", batch, model=Adapted()).status == "passed"
    result = found("gradient", batch, model=Adapted(cut=True))
    assert (result.sentence, result.values["first"], result.values["count"]) == ("lost", "first", 1)
    head = new_model()
    head.value = torch.nn.Linear(32, 1)
    assert found("gradient", batch, model=head).values["none"] == 2
    for name in ("gradient", "overfit"):
        result = found(name, batch, model=new_model().requires_grad_(False))
        assert (result.status, result.sentence) == ("failed", "frozen")


@pytest.mark.parametrize(
    ("gradient", "overfit", "loss"),
    [
        ("detached", "still", lambda model, batch: grpo(batch)(model).detach()),
        ("lost", "still", lambda model, batch: grpo(batch)(model) * 0),
        ("not-finite", "not-finite", lambda model, batch: grpo(batch)(model) * float("nan")),
        ("good", "wrong-way", lambda model, batch: grpo(batch, -1.0)(model)),
        ("good", "gains", lambda model, batch: grpo(batch)(model)),
    ],
)
def test_a_broken_loss_is_caught(model, gradient, overfit, loss):
    batch = sound(model)
    for name, sentence in (("gradient", gradient), ("overfit", overfit)):
        result = found(name, batch, model=model, loss=lambda m: loss(m, batch))
        assert result.sentence == sentence, (name, result)
        assert (result.status == "passed") == (sentence in ("good", "gains"))


def test_a_batch_that_cannot_be_learnt_is_caught(model):
    assert found("overfit", sound(model), model=model).status == "passed"
    stuck = new_model().requires_grad_(False)
    stuck.transformer.ln_f.bias.requires_grad_(True)  # all that may learn
    stuck.transformer.ln_f.bias.register_hook(lambda grad: grad * 0)
    assert found("overfit", sound(model), model=stuck).sentence == "still"


def test_the_verb_reads_tensors_and_models(tmp_path, model):
    from safetensors.torch import save_file

    model.save_pretrained(tmp_path / "policy")
    new_tokenizer().save_pretrained(tmp_path / "policy")
    new_model(1).save_pretrained(tmp_path / "other")
    batch = sound(model)
    tensors = {
        n: getattr(batch, n).contiguous().clone()
        for n in ("ids", "mask", "prompt_lengths", "old", "reference")
    }
    save_file(tensors, tmp_path / "batch.safetensors")
    torch.save({**tensors, "pad": PAD}, tmp_path / "batch.pt")
    torch.save({"ids": Adapted()}, tmp_path / "pickle.pt")
    source = Path(sys.modules["klinic"].__file__).parent.parent

    def klinic(*words):
        return subprocess.run([sys.executable, "-m", "klinic", "preflight", *words], capture_output=True, text=True, cwd=tmp_path,
                              env={**os.environ, "PYTHONPATH": str(source), "KLINIC_LANG": "en", "OMP_NUM_THREADS": "1"})  # fmt: skip

    done = klinic(
        "--batch",
        "batch.safetensors",
        "--model",
        "policy",
        "--reference",
        "other",
        "--skip",
        "overfit",
    )
    assert done.returncode == 1 and done.stderr == "", done.stdout + done.stderr
    assert (
        "passed       old-logprobs" in done.stdout
        and "mend reference-logprobs first" in done.stdout
    )
    done = klinic("--batch", "pickle.pt")
    assert (
        done.returncode == 2 and "cannot be read" in done.stderr and "Traceback" not in done.stderr
    )
    assert (
        preflight(_from_pt(tmp_path / "batch.pt"), model=model, only=["old-logprobs"]).exit_code
        == 0
    )
    done = klinic("--batch", "batch.pt", "--model", ".")
    assert (
        done.returncode == 2
        and "--model takes a folder" in done.stderr
        and "Traceback" not in done.stderr
    )


def _from_pt(path):
    from klinic.preflight._load import from_file

    return from_file(path)
