"""Word alignment: runs that link the words of bitext, the aligners for them, and annotation projection."""
