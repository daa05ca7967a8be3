"""Advice for a language without labels: what earlier studies gained by each option, and at what cost."""
