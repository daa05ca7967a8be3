"""Described corpora: corpora of one's own that a TOML file describes, and a first recipe."""
