"""What a described corpus holds, split by split, and what is odd about it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise, product
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from isogloss.core.errors import DataError
from isogloss.data.corpora.described import DescribedCorpus
from isogloss.data.corpora.questions import repairs_message
from isogloss.data.corpus import SPLITS, Source, Split
from isogloss.data.examples import Example
from isogloss.data.hub import data_source
from isogloss.data.projection.label_projection import texts_of
from isogloss.recipes.described_labels import labels_of, places_of


def splits_of(corpus: DescribedCorpus, data: str = "") -> list[tuple[str, Split]]:
    """List the languages and splits that have files; of bitext in lines, pairs that have every language."""
    places = places_of(Path(corpus.folder), data_source(data))
    pairs = ("-".join(pair) for pair in pairwise(corpus.languages))
    return [
        (code, split)
        for code, split in product(pairs if corpus.aligned else corpus.languages, SPLITS)
        if any(corpus.is_there(place, code, split) for place in places)
    ]


class SplitFound(NamedTuple):
    """What a split of a described corpus holds, and what is odd about it."""

    language: str
    split: Split
    examples: int
    labels: dict[str, int]
    """How often each label is there; of entities, each type."""
    repeated: int
    """Examples whose text was there before."""
    trained: int
    """Examples of dev and test whose text is one of the training split."""
    remarks: tuple[str, ...]
    """How its files are read, and what else is worth knowing: the range of numbers, texts without a label,
    answers found again."""
    first: str
    """The first text."""
    errors: tuple[str, ...]
    """The rows that do not fit."""


def looked_through(corpus: DescribedCorpus, data: str = "") -> Iterator[SplitFound]:
    """Read every split whole, and yield what it holds."""
    source, training = data_source(data), dict[str, set[str]]()
    for language, split in splits_of(corpus, data):
        texts, labels, errors, odd = list[str](), Counter[str](), list[str](), list[Any]()
        for example in _attempts(corpus, source, language, split):
            if isinstance(example, DataError):
                errors.append(str(example))
                continue
            texts.append("\t".join(texts_of(example)))
            labels.update(labels_of(example, spans="span-tagging" in corpus.tasks))
            odd += [example] if _is_odd(example) else []
        seen = dict.fromkeys(texts)
        trained = 0 if split == "train" else sum(text in training.get(language, ()) for text in texts)
        if split == "train":
            training[language] = set(seen)
        yield SplitFound(
            language=language,
            split=split,
            examples=len(texts),
            labels=dict(labels.most_common()),
            repeated=len(texts) - len(seen),
            trained=trained,
            remarks=tuple(_remarks(corpus, odd, language, split, data)),
            first=next(iter(texts), ""),
            errors=tuple(errors),
        )


def _attempts(
    corpus: DescribedCorpus, source: Source | None, language: str, split: Split
) -> Iterator[Example | DataError]:
    """Yield examples and the errors of rows that do not fit, the last one where reading cannot go on."""
    empty = True
    try:
        for example in corpus.attempts(source, language, split):
            empty = False
            yield example
        if empty:
            yield from corpus.read(source, language, split)  # Raises what an empty split is.
    except DataError as error:
        yield error


def _remarks(
    corpus: DescribedCorpus, odd: Sequence[Any], language: str, split: Split, data: str
) -> Iterator[str]:
    with suppress(DataError):  # It is among the errors.
        yield from corpus.remarks(data_source(data), language, split)
    if remark := _remark(odd, f"{corpus.name} {language} {split}"):
        yield remark


def _is_odd(example: object) -> bool:
    label = getattr(example, "label", None)
    return label == () or isinstance(label, float) or bool(getattr(example, "repaired", ""))


def _remark(odd: Sequence[Any], split: str) -> str:
    numbers = [one.label for one in odd if isinstance(getattr(one, "label", None), float)]
    if numbers:
        low, high, mean = min(numbers), max(numbers), fmean(numbers)
        return f"{split}: numbers from {low:g} to {high:g}, {mean:.3g} on average."
    return repairs_message(odd, split) or (f"{split}: texts without a label: {len(odd)}." if odd else "")
