"""Floor 1: corpora and formats, read into examples; the built-in languages."""

from isogloss.data.corpora.catalogue import CORPORA

__all__ = ["CORPORA"]
