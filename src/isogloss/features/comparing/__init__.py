"""Comparing: tests of differences between systems, of runs, of files of outputs, and of predictions."""
