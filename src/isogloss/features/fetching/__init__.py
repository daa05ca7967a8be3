"""Fetching: official files of corpora, downloaded and checked, and datasets of the Hugging Face hub."""
