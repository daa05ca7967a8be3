"""The labels of described corpora: those of the training data, then those that only other splits have."""

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from isogloss.core.errors import DataError
from isogloss.data.corpora.described import DescribedCorpus, inventory
from isogloss.data.corpus import SPLITS, Source, Split
from isogloss.data.examples import TaggedSentence
from isogloss.data.files import DiskFolder
from isogloss.data.formats.kinds import UNKNOWN
from isogloss.data.formats.tag_schemes import WORDS
from isogloss.data.projection.tag_projection import OUTSIDE, entities

PEEK = 100_000
"""Examples whose labels are read where a description gives none; of tagging also to tell BIO."""


def with_labels(corpus: DescribedCorpus, source: Source | None) -> DescribedCorpus:
    """Return the corpus with all labels; those of tagging are BIO where the files are."""
    given = corpus.labels
    if corpus.predicts == "labels" and isinstance(columns := corpus.columns["label"], tuple):
        return replace(corpus, labels=given or tuple(map(str, columns)))
    if given and (corpus.kind != "tagging" or corpus.scheme == WORDS):
        return corpus
    if given and corpus.assumed:  # Types of entities are what inventories tell; others say each tag.
        return replace(corpus, labels=inventory((OUTSIDE,), given))
    seen = _labels_by_split(replace(corpus, labels=_Any()), source)
    first, everything = (
        next(iter(seen.values())),
        {label: None for labels in seen.values() for label in labels},
    )
    if corpus.kind == "tagging" and corpus.scheme != WORDS:
        labels = inventory(first, given)
        further = [] if given else [tag for tag in inventory(everything, given) if tag not in labels]
    else:
        labels = tuple(sorted(first))
        further = sorted(everything.keys() - first.keys())
    return replace(corpus, labels=(*labels, *further), untrained=tuple(further) if "train" in seen else ())


def _labels_by_split(corpus: DescribedCorpus, source: Source | None) -> dict[Split, dict[str, None]]:
    """Return the labels of each split that any language has; DataError where none can be read."""
    places, by_split = places_of(Path(corpus.folder), source), dict[Split, dict[str, None]]()
    for split in SPLITS:
        codes = [
            code for code in corpus.languages if any(corpus.is_there(place, code, split) for place in places)
        ]
        examples = chain.from_iterable(corpus.attempts(source, code, split) for code in codes)
        seen, error = dict[str, None](), None
        with suppress(DataError) if by_split else nullcontext():
            for example in islice(examples, PEEK):
                if isinstance(example, DataError):  # An error where it is read, as may be others of its kind.
                    error = error or example
                else:
                    seen |= dict.fromkeys(labels_of(example, spans=False))
        if error and not (seen or by_split):
            raise error
        by_split |= {split: seen} if codes else {}
    if not by_split:
        raise DataError(
            f"no file of {corpus.name} to read its labels from. Write labels = [...], or give --data."
        )
    return by_split


def labels_of(example: object, *, spans: bool = True) -> Sequence[str]:
    """Return the labels of an example: its own, those of its words, or the types of its spans."""
    if isinstance(example, TaggedSentence):
        return [span.type for span in entities(example.tags)] if spans else example.tags
    label = getattr(example, "label", None)
    if isinstance(label, tuple):
        return label
    return () if label in (None, UNKNOWN) or isinstance(label, float) else (str(label),)


class _Any(tuple[str, ...]):
    """An inventory of all labels there are."""

    def __contains__(self, _: object) -> bool:
        return True


def places_of(folder: Path, source: Source | None) -> list[DiskFolder]:
    """Return where files may lie: beside a description, or below the data folder."""
    return [DiskFolder(folder), *([source] if isinstance(source, DiskFolder) else [])]
