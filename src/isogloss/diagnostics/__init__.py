"""Floor 5: one measurement per file."""
