"""Scores and statistics on plain sequences."""
