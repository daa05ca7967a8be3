"""Floor 7: names to objects, errors to exit codes."""
