"""The one loop, batching, checkpoints and evaluation."""
