"""Two runs side by side, and a change against its control."""
