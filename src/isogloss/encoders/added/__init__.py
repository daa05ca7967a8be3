"""Weights beside those of the encoder: language modules, adapters, deltas, differences."""
