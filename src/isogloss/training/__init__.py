"""Floor 4: the one loop, batching, checkpoints and evaluation."""
