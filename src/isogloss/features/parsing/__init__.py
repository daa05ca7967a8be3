"""Dependency parsing: heads and relations of words."""
