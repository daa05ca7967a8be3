"""Floor 7: measurements and methods as functions of your models, sentences and predictions."""
