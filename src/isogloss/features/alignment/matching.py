"""Rules of the aligner that compares states."""

from typing import Literal

Matching = Literal["argmax", "itermax", "match"]
"""Rules that link similar words: mutual best ones, these repeatedly, or the best one-to-one links."""
