"""What is added to an encoder's own weights: for languages, for a task, or as a difference."""
