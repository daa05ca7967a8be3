"""Corpora and formats, read into examples; the built-in languages."""
