"""isogloss: cross-lingual transfer, measured and improved."""
