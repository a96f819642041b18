"""Make a real GRPO run whose policy collapses: a tiny model learns sums under TRL until, at
--fault-step, its small entropy bonus is replaced by a strong entropy penalty (the one fault).
"""

import argparse
import os
import random
import re
import shutil
import string
import time
import warnings
from pathlib import Path

# Set before transformers is imported: nothing is ever asked of the hub.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import torch  # noqa: E402
from datasets import Dataset  # noqa: E402
from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: E402
from transformers import (  # noqa: E402
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    TrainerCallback,
    set_seed,
)
from trl import GRPOConfig, GRPOTrainer  # noqa: E402

SPECIAL = ["<pad>", "<bos>", "<eos>", "<unk>"]
SCRATCH = string.ascii_lowercase[:16]
OPERANDS = 20
GROUP = 8
ANSWER = re.compile(f"[{SCRATCH}]+=([0-9]+)")
# Share of right answers in what the base model is taught: it leaves RL something to learn.
BASE_RIGHT = 0.4
CHECKPOINT_FILES = (
    "trainer_state.json",
    "config.json",
    "generation_config.json",
    "model.safetensors",
)


def make_tokenizer():
    """One token a character."""
    vocab = {token: i for i, token in enumerate([*SPECIAL, *"0123456789+=:", *SCRATCH])}
    core = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    core.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="<pad>",
        bos_token="<bos>",
        eos_token="<eos>",
        unk_token="<unk>",
        padding_side="left",
    )


def prompt_of(x, y):
    # Fixed width, so that all prompts have six tokens.
    return f"{x:02}+{y:02}:"


def demonstration(rng, x, y):
    """Some scratch letters, `=`, and an answer that is often slightly off.

    The letters stand in for reasoning text: they are free, so a healthy policy keeps a high
    entropy there, as a language model does in its wording.
    """
    length = min(max(3, int(rng.gauss(8, 2))), 16)
    letters = "".join(
        rng.choice(SCRATCH) if rng.random() < 0.5 else SCRATCH[(x + i) % len(SCRATCH)]
        for i in range(length)
    )
    off = 0 if rng.random() < BASE_RIGHT else rng.choice([-10, -2, -1, 1, 2, 10])
    return f"{letters}={max(0, x + y + off)}"


def make_base(folder, tokenizer, problems, steps, seed):
    """Teach a random model the format and rough sums, as pretraining would have."""
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=4,
            max_position_embeddings=64,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            tie_word_embeddings=False,
        )
    )
    rng = random.Random(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(steps):
        rows = []
        for _ in range(64):
            x, y = rng.choice(problems)
            prompt = tokenizer(prompt_of(x, y))["input_ids"]
            answer = tokenizer(demonstration(rng, x, y))["input_ids"]
            rows.append((len(prompt), [*prompt, *answer, tokenizer.eos_token_id]))
        width = max(len(ids) for _, ids in rows)
        ids = torch.tensor([row + [tokenizer.pad_token_id] * (width - len(row)) for _, row in rows])
        mask = (ids != tokenizer.pad_token_id).long()
        labels = ids.masked_fill(mask == 0, -100)
        for i, (prompt_length, _) in enumerate(rows):
            labels[i, :prompt_length] = -100
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    # A folder, not an object: with beta above 0 TRL loads the reference policy from it.
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    print(f"base model: {steps} supervised steps, loss {loss.item():.3f}", flush=True)


def sum_reward(completions, answer, **_):
    """1 for scratch letters followed by the right sum, else 0."""
    found = (ANSWER.fullmatch(text) for text in completions)
    return [float(bool(m) and m[1] == right) for m, right in zip(found, answer, strict=True)]


def acc(completions, answer, **_):
    """The same measure under its own name; weight 0, so TRL only logs it."""
    return sum_reward(completions, answer)


class EntropyFault(TrainerCallback):
    """From one step on, give the entropy term another coefficient."""

    def __init__(self, step, coefficient):
        self.step = step
        self.coefficient = coefficient
        self.trainer = None

    def on_step_begin(self, args, state, control, **_):
        if state.global_step == self.step:
            self.trainer.entropy_coef = self.coefficient


def keep_logs_only(out):
    """Drop what is large or names the machine: optimizer, scheduler, RNG, pickled arguments."""
    for checkpoint in out.glob("checkpoint-*"):
        for path in checkpoint.iterdir():
            if path.name not in CHECKPOINT_FILES:
                path.unlink()
            else:
                # Weights are written for the owner alone; the run is there to be shared.
                path.chmod(0o644)
    shutil.rmtree(out / "base")
    # TRL's model card: text only, nothing of the run.
    (out / "README.md").unlink(missing_ok=True)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="run folder; a relative path keeps the log portable")
    parser.add_argument("--steps", type=int, default=140)
    parser.add_argument("--base-steps", type=int, default=2000, help="supervised steps beforehand")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--prompts", type=int, default=64, help="prompts a step")
    parser.add_argument("--entropy-coef", type=float, default=0.001)
    parser.add_argument("--fault-step", type=int, default=40)
    parser.add_argument("--fault-entropy-coef", type=float, default=-3.0)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main():
    options = parse_args()
    # One thread: with more, OpenMP spins, and a tiny model gets far slower on a busy machine.
    torch.set_num_threads(1)
    # Warnings print the path of the file they come from.
    warnings.filterwarnings("ignore")
    set_seed(options.seed)

    tokenizer = make_tokenizer()
    problems = [(x, y) for x in range(OPERANDS) for y in range(OPERANDS)]
    base = options.out / "base"
    make_base(base, tokenizer, problems, options.base_steps, options.seed)
    args = GRPOConfig(
        output_dir=str(options.out),
        max_steps=options.steps,
        per_device_train_batch_size=options.prompts * GROUP,
        num_generations=GROUP,
        num_iterations=1,
        max_completion_length=24,
        learning_rate=options.lr,
        lr_scheduler_type="constant",
        # Above 0, or TRL neither keeps a reference policy nor logs kl.
        beta=1e-3,
        # Not 0, or TRL builds no entropy term that the fault could change.
        entropy_coef=options.entropy_coef,
        reward_weights=[1.0, 0.0],
        logging_steps=1,
        save_steps=20,
        save_total_limit=7,
        report_to=[],
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        dataloader_pin_memory=False,
        seed=options.seed,
    )
    print(args, flush=True)
    fault = EntropyFault(options.fault_step, options.fault_entropy_coef)
    trainer = GRPOTrainer(
        model=str(base),
        reward_funcs=[sum_reward, acc],
        args=args,
        train_dataset=Dataset.from_list(
            [{"prompt": prompt_of(x, y), "answer": str(x + y)} for x, y in problems]
        ),
        processing_class=tokenizer,
        callbacks=[fault],
    )
    fault.trainer = trainer
    started = time.time()
    trainer.train()
    trainer.save_state()
    keep_logs_only(options.out)
    print(f"trained {options.steps} steps in {time.time() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
