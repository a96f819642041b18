"""The lab: a small real RL trainer in NumPy, and one named fault for each way to break it.

A policy of 22 thousand weights learns a verifiable task with GRPO or PPO. Nothing is drawn: every logged number is
computed from sampled tokens and real gradients. A fault changes a few settings of the healthy trainer; what follows
happens by itself. The lab imports nothing that judges runs, so it cannot know how it will be judged.

    words -> tasks -> network -> rewards, advantages, losses -> trainer -> runs
"""
