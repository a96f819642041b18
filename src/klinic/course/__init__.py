"""The exercises: read curves, name the failure, find its onset, go back, change one thing, judge a smoke run.

    scenes (specs -> logs) -> judge (an answer against a log) -> plan, progress -> commands -> shell

Round one draws its logs from ``scenes.toml`` and says so; round two asks the same of ``runs/``, compact logs of real
runs of the lab. What a learner reads stands in ``en.toml`` and ``zh.toml``.
"""
