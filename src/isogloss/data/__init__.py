"""Floor 1: corpora and formats, one per file, read into examples; the built-in languages."""
