"""Diagnose, go back, change one thing, try it beside a control, and write down every step."""
