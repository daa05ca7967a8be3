"""Floor 6: recipes to runs, the store and the engine."""
