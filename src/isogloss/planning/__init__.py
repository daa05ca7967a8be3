"""Floor 8: from a recipe to its runs; every mistake is reported before the first run starts."""
