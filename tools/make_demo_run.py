"""Make the bundled demo run: a tiny model under TRL's GRPOTrainer whose policy collapses.

The task: read four letters out of a-d, write the same letters in alphabetical order. The reward
that is paid is the share of letters in the right place (`acc`) plus 0.125 for the right length.
`acc` alone is a second reward function of weight 0, so TRL logs it but does not train on it.

The one fault: from step --fault-step on the learning rate is --fault-factor times what the
config says. Each update then overshoots: the policy runs into whatever sequence was ahead at that
moment, entropy goes to 0, all completions of a group earn the same reward, the advantages are 0
and nothing is left to learn from. --fault-factor 1 gives the same run without the fault.

Needs torch, trl and datasets; no network and no GPU. From an empty scratch folder, so that the
log holds no machine path:

    python make_demo_run.py --out runs/collapse --keep kept 2>&1 | tee stdout.log
"""

import argparse
import os
import random
import shutil
import warnings
from pathlib import Path

# Must be set before transformers is imported: the hub is never asked for anything.
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
)
from trl import GRPOConfig, GRPOTrainer  # noqa: E402

SPECIAL = ["<pad>", "<bos>", "<eos>", "<unk>"]
TASK_LETTERS = "abcd"
# The letters e-l are never right: they make the first policy nearly always wrong, so that the
# healthy stretch has something to learn.
ALL_CHARS = TASK_LETTERS + "efghijkl" + ">"
WORD_LENGTH = 8
# A power of two, as the word length is: TRL compares the standard deviation of a group with 0 to
# within 1e-8, and eight equal rewards of, say, 0.6 miss that by rounding.
LENGTH_BONUS = 0.125
FORM_STEPS = 150
KEPT_FILES = ("trainer_state.json", "config.json", "model.safetensors")


def build_tokenizer() -> PreTrainedTokenizerFast:
    """One token per character."""
    vocab = {token: number for number, token in enumerate(SPECIAL + list(ALL_CHARS))}
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


def build_model(tokenizer: PreTrainedTokenizerFast, layers: int, folder: Path) -> LlamaForCausalLM:
    """A small model that knows the form of an answer, saved and read back.

    With beta above 0 TRL loads the reference policy a second time from the folder that the model
    came from, so a model that exists in memory only will not do.
    """
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=64,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    model = LlamaForCausalLM(config)
    teach_form(model, tokenizer)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return LlamaForCausalLM.from_pretrained(folder)


def teach_form(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast) -> None:
    """Stand in for the fine-tuning that comes before RL: any word of the right length, then stop.

    Without it most of the run would go into learning to stop, and lengths would tell the story.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    first, last = (tokenizer.convert_tokens_to_ids(TASK_LETTERS[end]) for end in (0, -1))
    prompt_end, stop = tokenizer.convert_tokens_to_ids([">", "<eos>"])
    for _ in range(FORM_STEPS):
        words = torch.randint(first, last + 1, (64, 2 * WORD_LENGTH))
        column = torch.ones(64, 1, dtype=torch.long)
        prompt, answer = words.split(WORD_LENGTH, dim=1)
        tokens = torch.cat([prompt, column * prompt_end, answer, column * stop], dim=1)
        labels = tokens.clone()
        labels[:, : WORD_LENGTH + 1] = -100  # the prompt is given, not learned
        model(input_ids=tokens, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def build_dataset(seed: int) -> Dataset:
    """Random words and the same letters in order."""
    dice = random.Random(seed)
    words = ["".join(dice.choices(TASK_LETTERS, k=WORD_LENGTH)) for _ in range(2048)]
    rows = [{"prompt": word + ">", "answer": "".join(sorted(word))} for word in words]
    return Dataset.from_list(rows)


def acc(completions, answer, **_):
    """Share of letters in the right place, each letter too many taking one off again."""
    scores = []
    for text, right in zip(completions, answer):
        hits = sum(given == wanted for given, wanted in zip(text, right))
        extra = max(len(text) - WORD_LENGTH, 0)
        scores.append(max(hits - extra, 0) / WORD_LENGTH)
    return scores


def sort_reward(completions, answer, **_):
    """What is paid: acc plus a small part for writing neither too few nor too many letters."""
    scores = acc(completions, answer)
    return [score + LENGTH_BONUS * (len(text) == WORD_LENGTH)
            for score, text in zip(scores, completions)]


class LearningRateFault(TrainerCallback):
    """Multiply the learning rate once, at the given step."""

    def __init__(self, step: int, factor: float):
        self.step = step
        self.factor = factor

    def on_step_begin(self, args, state, control, optimizer=None, lr_scheduler=None, **_):
        if state.global_step != self.step:
            return
        # Both places: the optimizer for this step, the scheduler's base for all later ones.
        lr_scheduler.base_lrs = [rate * self.factor for rate in lr_scheduler.base_lrs]
        for group in optimizer.param_groups:
            group["lr"] *= self.factor


def keep(out: Path, target: Path) -> None:
    """Copy only what a reader of the run needs; optimizer states are large and name the machine."""
    target.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(out / "trainer_state.json", target / "trainer_state.json")
    for checkpoint in sorted(out.glob("checkpoint-*")):
        folder = target / checkpoint.name
        folder.mkdir(exist_ok=True)
        for name in KEPT_FILES:
            shutil.copyfile(checkpoint / name, folder / name)


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/collapse"), help="the trainer's")
    parser.add_argument("--keep", type=Path, help="folder for the files worth keeping")
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--fault-step", type=int, default=40)
    parser.add_argument("--fault-factor", type=float, default=15.0)
    parser.add_argument("--prompts", type=int, default=16, help="prompts a step")
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    options = parse_args()
    # One thread: with more, OpenMP spins and a busy machine makes a tiny model far slower.
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    # Warnings print the file they come from, and so the paths of the machine.
    warnings.filterwarnings("ignore")

    tokenizer = build_tokenizer()
    model = build_model(tokenizer, options.layers, options.out / "base")
    group_size = 8
    args = GRPOConfig(
        output_dir=str(options.out),
        max_steps=options.steps,
        per_device_train_batch_size=options.prompts * group_size,
        gradient_accumulation_steps=1,
        num_generations=group_size,
        num_iterations=1,
        max_completion_length=16,
        learning_rate=options.lr,
        lr_scheduler_type="constant",
        adam_epsilon=float(os.environ.get("EPS","1e-5")),
        beta=1e-3,
        reward_weights=[1.0, 0.0],
        logging_steps=1,
        save_steps=20,
        report_to=[],
        log_completions=False,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        dataloader_pin_memory=False,
        seed=options.seed,
    )
    print(args, flush=True)
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=[sort_reward, acc],
        args=args,
        train_dataset=build_dataset(options.seed),
        processing_class=tokenizer,
        callbacks=[LearningRateFault(options.fault_step, options.fault_factor)],
    )
    trainer.train()
    trainer.save_state()
    if options.keep:
        keep(options.out, options.keep)


if __name__ == "__main__":
    main()
