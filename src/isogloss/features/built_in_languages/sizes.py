"""How many examples each corpus of the built-in languages has."""

from isogloss.core.errors import check_named
from isogloss.features.built_in_languages.family import Language, find_language

SIZES: dict[str, dict[str, int]] = {
    "ud": {"train": 3000, "dev": 400, "test": 400},
    "wikiann": {"train": 3000, "dev": 400, "test": 400},
    "xnli": {"train": 12000, "dev": 600, "test": 600},
    "pawsx": {"train": 6000, "dev": 500, "test": 500},
    "squad": {"train": 3000, "dev": 300, "test": 300},
    "text": {"train": 20000, "dev": 500, "test": 500},
    "bitext": {"train": 20000, "dev": 500, "test": 500},
    "bitext-large": {"train": 100_000, "dev": 500, "test": 500},
}
"""Number of examples in each split. Training splits shrink by the language's ``size``."""


def split_size(corpus: str, language: str | Language, split: str) -> int:
    """Return the number of examples in a split."""
    check_named("built-in languages", "corpus", SIZES, corpus)
    check_named(f"built-in {corpus}", "split", SIZES[corpus], split)
    full_size = SIZES[corpus][split]
    return round(full_size * find_language(language).size) if split == "train" else full_size
