"""Buckets: folders of runs below a URL, with copies in the cache of the user."""
