"""Usual names of the columns of texts in files."""

TEXT_NAMES = ("text", "sentence", "review", "comment", "tweet", "headline", "document", "content")
"""Of the only text."""

FIRST = ("sentence1", "premise")
"""Of the first text of two."""

SECOND = ("sentence2", "hypo", "hypothesis")
"""Of the second text of two."""

TEXT_KEYS = ("text", "content", "sentence")
"""Usual keys of a text whose spans are marked."""
