"""What a recipe says: its text, tables, corpora and changes."""
