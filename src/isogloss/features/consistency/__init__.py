"""Consistency: equal predictions for a text and its translation, or for two models."""
