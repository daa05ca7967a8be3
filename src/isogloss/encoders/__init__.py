"""Floor 2: encoder families, subword-to-word maps and windows."""
