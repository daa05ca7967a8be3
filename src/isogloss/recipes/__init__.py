"""Floor 6: what a recipe says: its text, tables, corpora and changes."""
