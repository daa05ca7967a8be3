"""Masked language modelling: encoders learn from text."""
