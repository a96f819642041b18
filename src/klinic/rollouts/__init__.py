"""The samples behind a curve: what the policy wrote, and what the reward paid for it."""
