"""The kinds of runs: their content, reads, dependencies, costs and computation."""
