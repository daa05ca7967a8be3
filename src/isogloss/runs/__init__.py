"""Floor 7: the kinds of runs: their content, reads, dependencies and costs, and how they are made."""
