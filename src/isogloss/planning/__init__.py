"""Plan the runs of a recipe. A plan reports every mistake before the first run starts."""
