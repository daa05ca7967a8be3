"""Landscapes: scores along paths and on planes between models, and the differences between models."""
