"""Ensembled projection: predictions on translations are projected to the target's words and averaged."""
