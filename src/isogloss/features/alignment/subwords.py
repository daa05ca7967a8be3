"""Subwords as the units that are aligned."""

from collections.abc import Sequence
from dataclasses import replace

from isogloss.data.examples import Translation
from isogloss.data.formats.word_links import pair_words
from isogloss.encoders.family import Tokenizer
from isogloss.encoders.subwords import split_words
from isogloss.training.bitext import TOKENIZED_TOGETHER, subword_texts


def in_subwords(pairs: Sequence[Translation], tokenizer: Tokenizer) -> list[Translation]:
    """Return sentence pairs whose words are their subwords, without links, for aligning subwords."""
    subword_pairs = []
    for start in range(0, len(pairs), TOKENIZED_TOGETHER):
        chunk = pairs[start : start + TOKENIZED_TOGETHER]
        splits = iter(split_words([side for pair in chunk for side in pair_words(pair)], tokenizer))
        for pair in chunk:
            sides = (subword_texts(next(splits), tokenizer), subword_texts(next(splits), tokenizer))
            subword_pairs.append(replace(pair, words=sides, links=None, possible=()))
    return subword_pairs
