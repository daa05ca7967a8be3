"""The explorer: models on paths and planes answer any text, in a browser."""
