"""The corpora of the built-in languages: their sizes, and the examples of each split."""

from collections.abc import Callable, Iterator
from itertools import islice

from isogloss.core.errors import check_named
from isogloss.core.seeds import derive
from isogloss.data.examples import Example, Translation
from isogloss.data.languages.draws import Draws
from isogloss.data.languages.family import Language, find_language
from isogloss.data.languages.lexicon import Lexicon, lexicon
from isogloss.data.languages.questions import questions
from isogloss.data.languages.sentence_pairs import inference_pairs, paraphrase_pairs
from isogloss.data.languages.sentences import bitext, parsed_sentences, tagged_sentences, text_lines

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
"""Examples in each split; training splits shrink by the language's ``size``."""

GENERATORS: dict[str, Callable[[Lexicon, Draws], Iterator[Example]]] = {
    "ud": parsed_sentences,
    "wikiann": tagged_sentences,
    "xnli": inference_pairs,
    "pawsx": paraphrase_pairs,
    "squad": questions,
    "text": text_lines,
}
"""Endless examples of each corpus; bitext, which takes two languages, has ``translations``."""


def examples(corpus: str, language: str | Language, split: str, *, seed: int = 0) -> Iterator[Example]:
    """Yield the examples of one split, made as they are taken.

    Test and dev splits say the same in every language, in the same order under the same ids; training
    splits and running text do not.
    """
    check_named("built-in languages", "corpus", GENERATORS, corpus)
    spec, count = find_language(language), split_size(corpus, language, split)
    purpose = spec.code if split == "train" or corpus == "text" else ""
    draws = Draws(derive(seed, corpus, split, purpose))
    return islice(GENERATORS[corpus](lexicon(spec), draws), count)


def translations(
    first: str | Language, second: str | Language, split: str, *, seed: int = 0, corpus: str = "bitext"
) -> Iterator[Translation]:
    """Yield bitext with gold word links, made as it is taken; "bitext-large" begins as "bitext" does.

    Texts are words separated by spaces, punctuation apart, in Han-like scripts too, so that links count
    words. Dev and test splits say the same in every pair of languages.
    """
    first_language, second_language = find_language(first), find_language(second)
    count = min(split_size(corpus, first_language, split), split_size(corpus, second_language, split))
    purpose = sorted((first_language.code, second_language.code)) if split == "train" else []
    draws = Draws(derive(seed, "bitext", split, *purpose))
    return islice(bitext(lexicon(first_language), lexicon(second_language), draws), count)


def split_size(corpus: str, language: str | Language, split: str) -> int:
    """Return how many examples a split has."""
    check_named("built-in languages", "corpus", SIZES, corpus)
    check_named(f"built-in {corpus}", "split", SIZES[corpus], split)
    full = SIZES[corpus][split]
    return round(full * find_language(language).size) if split == "train" else full
