"""Corpora: where their files lie, which languages and labels they have."""
