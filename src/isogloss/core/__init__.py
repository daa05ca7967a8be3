"""Languages, parts of runs, ids, records and errors. It imports only pydantic."""

VERSION = "0.1.0"
"""The version of the package, which can be read without importing anything else."""
