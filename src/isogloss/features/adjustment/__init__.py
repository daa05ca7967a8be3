"""Adjustment: an encoder learns from aligned translations, alone or while it learns a task."""
