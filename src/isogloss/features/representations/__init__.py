"""Representations: how alike the states of languages are, by CKA, retrieval, anisotropy and maps."""
