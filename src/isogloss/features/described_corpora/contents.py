"""The labels of described corpora, and the contents of their splits with what is odd about them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from itertools import chain, islice, pairwise, product
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from isogloss.core.errors import DataError
from isogloss.core.tag_schemes import OUTSIDE, WORDS, are_bio, find_spans
from isogloss.data.corpus import SPLITS, Source, Split
from isogloss.data.data_sources import data_source
from isogloss.data.examples import Example, TaggedSentence, repairs_message
from isogloss.data.files import DiskFolder
from isogloss.data.formats.corpus_kinds import UNKNOWN
from isogloss.data.formats.reading import Predicts
from isogloss.data.lemma_rules import NO_LEMMA, inventory_of, rule_of
from isogloss.data.projection.example_texts import texts_of
from isogloss.features.described_corpora.corpus import DescribedCorpus, inventory

MAX_EXAMPLES_READ = 100_000
"""Examples whose labels are read where a description has none, or to recognise BIO."""


def with_labels(corpus: DescribedCorpus, source: Source | None) -> DescribedCorpus:
    """Add all labels to a corpus, the labels of the training data first. Tags of spans are added as BIO."""
    labels = corpus.labels
    if corpus.predicts == "lemma":
        return replace(corpus, labels=inventory_of(next(iter(_labels_by_split(corpus, source).values()))))
    if corpus.predicts == "labels" and isinstance(columns := corpus.columns["label"], tuple):
        return replace(corpus, labels=labels or tuple(str(column) for column in columns))
    if labels and (corpus.kind != "tagging" or corpus.scheme == WORDS):
        return corpus
    if labels and (corpus.assumed or _is_to_be_fetched(corpus, source)):
        # A description lists types of entities, not every tag.
        return replace(corpus, labels=inventory((OUTSIDE,), labels))
    labels_of_splits = _labels_by_split(replace(corpus, labels=_Any()), source)
    first_labels = next(iter(labels_of_splits.values()))
    union = dict.fromkeys(chain.from_iterable(labels_of_splits.values()))
    if corpus.kind == "tagging" and corpus.scheme != WORDS:
        trained_labels = inventory(first_labels, labels)
        untrained_labels = (
            [] if labels else [tag for tag in inventory(union, labels) if tag not in trained_labels]
        )
    else:
        trained_labels = tuple(sorted(first_labels))
        untrained_labels = sorted(union.keys() - first_labels.keys())
    return replace(
        corpus,
        labels=(*trained_labels, *untrained_labels),
        untrained=tuple(untrained_labels) if "train" in labels_of_splits else (),
    )


def _is_to_be_fetched(corpus: DescribedCorpus, source: Source | None) -> bool:
    """Return whether no file is there yet, because a source fetches files when they are read."""
    if source is None or isinstance(source, DiskFolder):
        return False
    folders = folders_of(Path(corpus.folder), source)
    return not any(
        _has_files(corpus, folders, language, split) for split in SPLITS for language in corpus.languages
    )


def _labels_by_split(corpus: DescribedCorpus, source: Source | None) -> dict[Split, Counter[str]]:
    """Count the labels of each split that any language has. Raises DataError if no split can be read."""
    folders, labels_of_splits = folders_of(Path(corpus.folder), source), dict[Split, Counter[str]]()
    for split in SPLITS:
        languages = [
            language for language in corpus.languages if _has_files(corpus, folders, language, split)
        ]
        examples = chain.from_iterable(corpus.attempts(source, language, split) for language in languages)
        labels, error = Counter[str](), None
        with suppress(DataError) if labels_of_splits else nullcontext():
            for example in islice(examples, MAX_EXAMPLES_READ):
                if isinstance(example, DataError):  # Raised only if no row of the split fits.
                    error = error or example
                else:
                    labels.update(labels_of(example, corpus.predicts, spans=False))
        if error and not (labels or labels_of_splits):
            raise error
        if languages:
            labels_of_splits[split] = labels
    if not labels_of_splits:
        advice = (
            "Give --data DIR with its files"
            if corpus.predicts == "lemma"
            else "Write labels = [...] in its description, or give --data DIR with its files"
        )
        raise DataError(f"no file of {corpus.name} to read its labels from is on this machine. {advice}.")
    return labels_of_splits


def labels_of(example: object, predicts: Predicts = "label", *, spans: bool = True) -> Sequence[str]:
    """Return the labels of an example: the labels of its words, the types of its ``spans``, or its label.

    The labels of lemmas are the rules that derive them from the words.
    """
    if isinstance(example, TaggedSentence) and predicts == "lemma":
        return [
            rule_of(*pair) for pair in zip(example.words, example.tags, strict=False) if pair[1] != NO_LEMMA
        ]
    if isinstance(example, TaggedSentence):
        is_marked = spans and are_bio(example.tags)
        return [span.type for span in find_spans(example.tags)] if is_marked else example.tags
    label = getattr(example, "label", None)
    if isinstance(label, tuple):
        return label
    return () if label in (None, UNKNOWN) or isinstance(label, float) else (str(label),)


class _Any(tuple[str, ...]):
    """An inventory that contains every label."""

    def __contains__(self, _: object) -> bool:
        return True


def folders_of(folder: Path, source: Source | None) -> list[DiskFolder]:
    """Return the folders to search for files: the description's folder and the data folder."""
    data = source.folder("") if source else None
    return [DiskFolder(folder), *([data] if data else [])]


def _has_files(corpus: DescribedCorpus, folders: Sequence[DiskFolder], language: str, split: Split) -> bool:
    return any(corpus.is_there(folder, language, split) for folder in folders)


def splits_of(corpus: DescribedCorpus, data: str = "") -> list[tuple[str, Split]]:
    """List the languages and splits that have files.

    Bitext in lines has the pairs that all its parts have.
    """
    folders = folders_of(Path(corpus.folder), data_source(data))
    pairs = ("-".join(pair) for pair in pairwise(corpus.languages))
    return [
        (language, split)
        for language, split in product(pairs if corpus.aligned else corpus.languages, SPLITS)
        if _has_files(corpus, folders, language, split)
    ]


class SplitContents(NamedTuple):
    """The contents of a split of a described corpus, and what is odd about them."""

    language: str
    split: Split
    examples: int
    labels: dict[str, int]
    """Count of each label, or of each type of entities."""
    repeated: int
    """Examples that repeat the text of an earlier one."""
    trained: int
    """Examples of dev and test whose text is in the training split."""
    remarks: tuple[str, ...]
    """Remarks on how its files are read, the range of numbers, texts without a label, and repaired answers.
    """
    first: str
    """The first text."""
    errors: tuple[str, ...]
    """Errors of rows that do not fit."""
    is_readable: bool = True
    """Whether its files can be read at all, apart from rows that do not fit."""


def inspect_splits(corpus: DescribedCorpus, data: str = "") -> Iterator[SplitContents]:
    """Read all of every split, and yield its contents."""
    source, training = data_source(data), dict[str, set[str]]()
    for language, split in splits_of(corpus, data):
        texts, labels, errors, odd = list[str](), Counter[str](), list[str](), list[Any]()
        unreadable = list[DataError]()
        for example in _attempts(corpus, source, language, split, unreadable):
            if isinstance(example, DataError):
                errors.append(str(example))
                continue
            texts.append("\t".join(texts_of(example)))
            labels.update(labels_of(example, corpus.predicts, spans="span-tagging" in corpus.tasks))
            odd += [example] if _is_odd(example) else []
        distinct = set(texts)
        overlap = 0 if split == "train" else sum(text in training.get(language, ()) for text in texts)
        if split == "train":
            training[language] = distinct
        yield SplitContents(
            language=language,
            split=split,
            examples=len(texts),
            labels=dict(labels.most_common()),
            repeated=len(texts) - len(distinct),
            trained=overlap,
            remarks=(
                *_remarks(corpus, odd, language, split, data),
                *_report_unlisted(corpus, labels, language, split),
            ),
            first=next(iter(texts), ""),
            errors=tuple(errors),
            is_readable=not unreadable,
        )


def _attempts(
    corpus: DescribedCorpus,
    source: Source | None,
    language: str,
    split: Split,
    unreadable: list[DataError],
) -> Iterator[Example | DataError]:
    """Yield examples and errors of rows that do not fit, and add what ends the reading to ``unreadable``."""
    is_empty = True
    try:
        for example in corpus.attempts(source, language, split):
            is_empty = False
            yield example
        if is_empty:
            yield from corpus.read(source, language, split)  # Raises the error of an empty split.
    except DataError as error:
        unreadable.append(error)
        yield error


def _remarks(
    corpus: DescribedCorpus, odd: Sequence[Any], language: str, split: Split, data: str
) -> Iterator[str]:
    with suppress(DataError):  # It is among the errors.
        yield from corpus.remarks(data_source(data), language, split)
    if remark := _remark(odd, f"{corpus.name} {language} {split}"):
        yield remark


def _report_unlisted(
    corpus: DescribedCorpus, rules: Counter[str], language: str, split: Split
) -> Iterator[str]:
    """Yield the share of words whose lemma no rule of the corpus makes, which no model can predict."""
    listed_count = sum(rules[rule] for rule in corpus.labels)
    if corpus.predicts == "lemma" and rules:
        share = 1 - listed_count / rules.total()
        yield f"{corpus.name} {language} {split}: {share:.2%} of lemmas need a rule that is not learned."


def _is_odd(example: object) -> bool:
    label = getattr(example, "label", None)
    return label == () or isinstance(label, float) or bool(getattr(example, "repaired", ""))


def _remark(odd: Sequence[Any], split: str) -> str:
    numbers = [example.label for example in odd if isinstance(getattr(example, "label", None), float)]
    if numbers:
        low, high, mean = min(numbers), max(numbers), fmean(numbers)
        return f"{split}: numbers from {low:g} to {high:g}, {mean:.3g} on average."
    return repairs_message(odd, split) or (f"{split}: texts without a label: {len(odd)}." if odd else "")
