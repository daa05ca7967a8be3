"""Pretraining: encoders learn from text, from new weights or from an encoder that exists."""
