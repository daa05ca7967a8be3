"""Floor 3: encode, head, loss, decode and score for each task."""
