"""Language arithmetic: adapters are moved to a language, or mixed with those of a related language."""
