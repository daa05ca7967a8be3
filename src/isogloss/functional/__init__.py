"""Floor 7: measurements and methods as functions of your own models, sentences and predictions."""
