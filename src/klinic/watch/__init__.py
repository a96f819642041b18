"""Watch runs while they grow: follow, monitor, remember, tell. The order of the data: follow -> monitor -> state -> deliver -> targets."""
