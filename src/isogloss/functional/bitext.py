"""Sentences that a caller has, with their translations and word links, as bitext.

``first`` and ``second`` are sentences and their translations, in the same order: texts, which are split into
words as everywhere in isogloss, or lists of words.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol, cast

from isogloss.core.errors import DataError, missing_feature
from isogloss.core.progress import OnProgress
from isogloss.core.registry import FUNCTIONS
from isogloss.data.examples import Translation
from isogloss.data.formats.word_links import pair_words
from isogloss.data.projection.words import tokenize
from isogloss.functional.given_models import TextModel, TextTokenizer
from isogloss.functional.states import Sentence, join_words

Links = Sequence[tuple[int, int]]
"""Pairs of words, (word of a sentence, word of its translation), counted from 0."""


class LinkWords(Protocol):
    """The function ``isogloss.align``."""

    def __call__(
        self,
        first: Sequence[Sentence],
        second: Sequence[Sentence],
        model: TextModel | None = None,
        tokenizer: TextTokenizer | None = None,
        *,
        on_progress: OnProgress | None = None,
    ) -> Sequence[Links]:
        """Return the links between the words of sentences and of their translations."""


def link_words(
    first: Sequence[Sentence],
    second: Sequence[Sentence],
    model: TextModel | None = None,
    tokenizer: TextTokenizer | None = None,
    *,
    on_progress: OnProgress | None = None,
) -> Sequence[Links]:
    """Link words where a caller gives no links, by ``isogloss.align``.

    Raises ConfigError if the feature with that function is missing.
    """
    if "align" not in FUNCTIONS:
        raise missing_feature(
            "links: isogloss.align, which finds them,", "Install isogloss again, or give links."
        )
    align = cast(LinkWords, FUNCTIONS["align"])
    return align(first, second, model, tokenizer, on_progress=on_progress)


def translations(
    first: Sequence[Sentence], second: Sequence[Sentence], links: Iterable[Links] | None = None
) -> list[Translation]:
    """Return sentences and their translations as bitext.

    DataError where their numbers differ, or links are beyond the words.
    """
    all_links = (
        None
        if links is None
        else [tuple(sorted(tuple(word_link) for word_link in pair_links)) for pair_links in links]
    )
    counts = [len(first), len(second), *([] if all_links is None else [len(all_links)])]
    if len(set(counts)) > 1:
        raise DataError(
            f"{counts[0]} sentences, {counts[1]} translations"
            f"{'' if all_links is None else f', links of {counts[2]}'}; expected equal numbers."
        )
    bitext = [
        Translation(
            id=str(index),
            first=join_words(sentence),
            second=join_words(translation),
            links=None if all_links is None else all_links[index],  # type: ignore[arg-type]
            words=_words(sentence, translation),
        )
        for index, (sentence, translation) in enumerate(zip(first, second, strict=True))
    ]
    for pair in bitext:
        sizes = [len(words) for words in pair_words(pair)] if pair.links else [0, 0]
        for link in pair.links or ():
            if not all(0 <= word < size for word, size in zip(link, sizes, strict=True)):
                raise DataError(
                    f"pair {pair.id}: a link {link}; expected words 0 to {sizes[0] - 1} and 0 to "
                    f"{sizes[1] - 1}. Count words from 0, as align does."
                )
    return bitext


def _words(*sentences: Sentence) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the words of both sides if either is a list of words. None if both are texts."""
    if all(isinstance(sentence, str) for sentence in sentences):
        return None
    sides = [tokenize(side) if isinstance(side, str) else tuple(side) for side in sentences]
    return sides[0], sides[1]
