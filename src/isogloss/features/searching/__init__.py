"""Searching: settings of a recipe whose models score highest on dev data."""
