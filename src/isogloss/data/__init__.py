"""Read corpora and formats into examples, and generate the built-in languages."""
