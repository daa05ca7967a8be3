"""Tables, figures and HTML from only the records."""
