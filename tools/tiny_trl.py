"""A tiny GRPO trainer under TRL with the flags a real one has: it resumes, takes one override, and saves checkpoints.

Left alone, it turns its small entropy bonus into a strong penalty at --fault-step, which collapses the policy; a run
that is given --entropy_coef keeps what it is given. ``klinic rescue`` is tried on it:

    python tools/tiny_trl.py --output_dir run --max_steps 60 > run.log; mv run.log run/stdout.log
    klinic rescue run --command "python tools/tiny_trl.py --resume_from_checkpoint {checkpoint} {flag} {value}
                                 --output_dir {out} --max_steps {until} --seed {seed}"
"""

import argparse
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import torch
from datasets import Dataset
from make_demo_run import GROUP, OPERANDS, acc, make_base, make_tokenizer, prompt_of, sum_reward
from transformers import TrainerCallback, set_seed
from trl import GRPOConfig, GRPOTrainer

BONUS, PENALTY = 1e-3, -3.0
SAVE_EVERY = 20


class Fault(TrainerCallback):
    """From one step on the entropy term has the wrong sign. Also draws fresh samples where a run resumes."""

    def __init__(self, step, seed):
        self.step, self.seed, self.trainer, self.begun = step, seed, None, False

    def on_step_begin(self, args, state, control, **_):
        if not self.begun:
            # The checkpoint brings its own random state; another seed must draw other samples.
            set_seed(self.seed * 100_003 + state.global_step)
            self.begun = True
        if self.step is not None and state.global_step >= self.step:
            self.trainer.entropy_coef = PENALTY


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--max_steps", type=int, default=60)
    parser.add_argument("--resume_from_checkpoint", type=Path)
    parser.add_argument("--base", type=Path, help="base model (default: the checkpoint's run's)")
    parser.add_argument("--base-steps", type=int, default=1000)
    parser.add_argument("--prompts", type=int, default=16)
    parser.add_argument("--fault-step", type=int, default=20)
    parser.add_argument("--learning_rate", type=float, default=1e-3)
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--entropy_coef", type=float)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main():
    options = parse_args()
    torch.set_num_threads(1)  # with more, a tiny model gets far slower on a busy machine
    warnings.filterwarnings("ignore")
    set_seed(options.seed)
    checkpoint = options.resume_from_checkpoint
    tokenizer = make_tokenizer()
    problems = [(x, y) for x in range(OPERANDS) for y in range(OPERANDS)]
    base = options.base or (checkpoint.parent if checkpoint else options.output_dir) / "base"
    if not base.exists():
        make_base(base, tokenizer, problems, options.base_steps, options.seed)
    args = GRPOConfig(
        output_dir=str(options.output_dir),
        max_steps=options.max_steps,
        per_device_train_batch_size=options.prompts * GROUP,
        num_generations=GROUP,
        max_completion_length=24,
        learning_rate=options.learning_rate,
        temperature=options.temperature,
        lr_scheduler_type="constant",
        beta=1e-3,
        entropy_coef=BONUS if options.entropy_coef is None else options.entropy_coef,
        reward_weights=[1.0, 0.0],
        logging_steps=1,
        save_steps=SAVE_EVERY,
        report_to=[],
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        dataloader_pin_memory=False,
        seed=options.seed,
    )
    print(args, flush=True)
    fault = Fault(options.fault_step if options.entropy_coef is None else None, options.seed)
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
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    trainer.save_state()


if __name__ == "__main__":
    main()
