"""File formats, read into examples and written again, each line checked."""
