"""A tiny GRPO run under TRL with klinic's callback in it: python tests/tiny_grpo.py OUT [--learning_rate 1] [--steps 60]."""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
import torch
from datasets import Dataset
from make_demo_run import GROUP, OPERANDS, acc, make_base, make_tokenizer, prompt_of, sum_reward
from transformers import TrainerCallback, set_seed
from trl import GRPOConfig, GRPOTrainer

from klinic.hooks.trl import KlinicCallback


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--learning_rate", type=float, default=3e-4)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--base-steps", type=int, default=300)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--stop_on")
    parser.add_argument("--save_on")
    parser.add_argument("--report_to", default="none")
    parser.add_argument("--detached", action="store_true")
    parser.add_argument("--break_it", action="store_true", help="hand klinic nonsense")
    return parser.parse_args()


class Break(TrainerCallback):
    """What klinic reads becomes nonsense, in its own copy of things only."""

    def __init__(self, callback):
        self.callback = callback

    def on_step_end(self, args, state, control, **_):
        if state.global_step == 3 and self.callback._tap is not None:
            self.callback._tap._count = None


def main():
    options = parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    set_seed(0)
    tokenizer = make_tokenizer()
    problems = [(x, y) for x in range(OPERANDS) for y in range(OPERANDS)]
    base = options.out.parent / "base"
    if not base.exists():
        make_base(base, tokenizer, problems, options.base_steps, 0)
    args = GRPOConfig(
        output_dir=str(options.out),
        max_steps=options.steps,
        per_device_train_batch_size=options.prompts * GROUP,
        num_generations=GROUP,
        num_iterations=2,
        max_completion_length=24,
        learning_rate=options.learning_rate,
        lr_scheduler_type="constant",
        beta=1e-3,
        reward_weights=[1.0, 0.0],
        logging_steps=1,
        save_strategy="no",
        report_to=[] if options.report_to == "none" else [options.report_to],
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        dataloader_pin_memory=False,
        seed=0,
    )
    callback = KlinicCallback(every=options.every, stop_on=options.stop_on, save_on=options.save_on)
    trainer = GRPOTrainer(
        model=str(base),
        reward_funcs=[sum_reward, acc],
        args=args,
        train_dataset=Dataset.from_list(
            [{"prompt": prompt_of(x, y), "answer": str(x + y)} for x, y in problems]
        ),
        processing_class=tokenizer,
        callbacks=[callback, *([Break(callback)] if options.break_it else [])],
    )
    if not options.detached:
        callback.attach(trainer)
    begun = time.perf_counter()
    trainer.train()
    whole = time.perf_counter() - begun
    trainer.save_state()
    print(
        json.dumps(
            {
                "steps": trainer.state.global_step,
                "seconds": whole,
                "klinic": callback.seconds,
                "share": callback.seconds / whole,
                "quiet": callback.quiet,
                "row": trainer.state.log_history[-2],
            }
        )
    )


if __name__ == "__main__":
    main()
