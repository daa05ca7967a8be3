"""Floor 7: the kinds of runs: their content, reads, dependencies, costs and computation."""
