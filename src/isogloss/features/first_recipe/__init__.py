"""A first recipe: written for a task and a corpus, or for a file with labels."""
