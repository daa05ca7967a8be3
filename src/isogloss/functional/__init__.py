"""Measurements and methods as functions of your models, sentences and predictions."""
