"""A part of each kind that isogloss takes from other packages."""
