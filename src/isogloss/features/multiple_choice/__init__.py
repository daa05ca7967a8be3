"""Multiple choice: one of several answers to a question about a text."""
