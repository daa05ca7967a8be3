"""Word distances: how far words are from their translations, and from other words."""
