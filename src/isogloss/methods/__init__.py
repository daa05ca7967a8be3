"""Floor 5: one training method per file."""
