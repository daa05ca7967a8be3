"""Names of the file of gates of languages, and of the tensors in it."""

MASKS = "masks"
"""File name, without suffix, of the gates of languages, next to the record of language-gates."""

LOG_ALPHA = "log_alpha"
"""Prefix of names of gates in the file (log_alpha/LANGUAGE/DRAW/GROUP)."""

ABOVE = "above"
"""Prefix of names of the log α above which gates are open."""
