"""Measures of states: CKA, retrieval, mining, word distances. Nothing here depends on runs or recipes."""
