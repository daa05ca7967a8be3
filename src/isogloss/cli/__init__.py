"""Floor 7: names to objects, errors to exit codes; no logic."""

from isogloss.cli.ending import main

__all__ = ["main"]
