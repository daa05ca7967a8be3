"""Choosing without labels: a model for a language, a source for a target, and the score to expect."""
