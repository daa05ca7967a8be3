"""Floor 1: network parts."""
