"""Gradient conflict: whether the gradients of two languages point the same way."""
