"""Floor 6: tables, figures and HTML from records alone."""
