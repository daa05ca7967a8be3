"""Floor 1: scores and statistics on plain sequences."""
