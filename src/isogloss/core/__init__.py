"""Floor 0: languages, parts of runs, ids, records, errors; standard library and pydantic only."""

VERSION = "0.1.0"
"""The version of the package, which can be read without importing anything else."""
