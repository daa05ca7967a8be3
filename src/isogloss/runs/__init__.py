"""Floor 7: the kinds of runs: what each is, reads, needs and costs, and how it is made."""
