"""Translation: runs that train translators and translate examples with their labels, and the translators."""
