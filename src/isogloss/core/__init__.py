"""Floor 0: languages, run specs, ids, records, errors, seeds; standard library and pydantic only."""
