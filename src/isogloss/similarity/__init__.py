"""Numbers from the states of sentences and words: no run, row or recipe is known here."""
