"""What a reward function pays for, tried out before the run."""
