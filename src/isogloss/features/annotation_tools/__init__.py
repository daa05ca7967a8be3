"""Annotation tools: files of brat and WebAnno, and JSON with spans by offsets, are read and written."""
