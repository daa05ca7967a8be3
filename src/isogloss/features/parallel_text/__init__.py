"""Parallel text: the corpora bitext, bible and bucc2018, in the usual forms of publication."""
