"""Additions to an encoder's weights: for languages, for a task, or as a difference."""
