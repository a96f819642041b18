"""Readers of rollout dumps, one layout a file; the folder is walked, so a new file is a new layout."""
