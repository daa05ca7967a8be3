"""Language groups: scores by family, script and resources of languages."""
