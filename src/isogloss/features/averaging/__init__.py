"""Averaging: means of models, and sums of task and language vectors."""
