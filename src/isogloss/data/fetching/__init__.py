"""Official files of corpora: downloading, checking and unpacking."""
