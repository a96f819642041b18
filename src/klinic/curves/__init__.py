"""Curves reduced, once each, to words and numbers; numpy only."""
