"""Nearest sources: which languages have the words that an encoder represents most like the target's?"""
