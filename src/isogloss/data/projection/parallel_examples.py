"""Parallel examples: the splits that have them, matching by id, and test sets of two languages.

Parallel test sets use the same ids in every language, and translations keep the ids of their originals. But
many formats simply number their examples, so equal ids are no proof: only the splits listed here count.

Mixed-language test sets replace one part of each target example by its source original (cross-lingual
adjustment, Section 4): the premise or the hypothesis of an XNLI pair, chosen at random, or the question or
the passage of a QA example. The choice depends only on the id, so it is the same for every target language.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeVar

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.identity import derive
from isogloss.core.languages import is_built_in
from isogloss.data.corpus import Split
from isogloss.data.examples import Choice, Example, LabelledText, Question, SentencePair
from isogloss.data.files import some

PARALLEL_SPLITS: Mapping[str, tuple[Split, ...]] = {
    "belebele": ("test",),
    "sib200": ("train", "dev", "test"),
    "xnli": ("dev", "test"),
    "pawsx": ("dev", "test"),
    "mlqa": ("dev", "test"),
    "squad": ("test",),  # XQuAD
}
"""Professionally translated splits, by corpus. In MLQA any two languages share only part of the examples."""

BUILT_IN_SPLITS: tuple[Split, ...] = ("dev", "test")
"""Parallel splits of all corpora of the built-in languages."""

MAX_LABEL_MISMATCH = 0.05
"""Share of labels that may differ between two languages. PAWS-X has 8 of 1,994; files in different orders
have about half."""

FirstExample = TypeVar("FirstExample", bound=Example)
SecondExample = TypeVar("SecondExample", bound=Example)

Side = Literal["random", "first", "second"]
"""Text of a pair that comes from the source language."""

Part = Literal["question", "passage"]
"""Part of a QA example that comes from the source language. Answers always belong to the passage."""


def check_parallel(corpus: str, split: Split, languages: Sequence[str], treebanks: Mapping[str, str]) -> None:
    """Raise ConfigError unless a split is known to be parallel in all of these languages."""
    if len({is_built_in(language) for language in languages}) > 1:
        raise ConfigError(
            f"languages {' '.join(languages)}: built-in and natural languages have no examples in common. "
            f"Choose languages of one kind."
        )
    if is_parallel(corpus, split, languages, treebanks):
        return
    choices = "; ".join(f"{name} ({', '.join(splits)})" for name, splits in sorted(PARALLEL_SPLITS.items()))
    raise ConfigError(
        f"{corpus!r}: the {split} split is not known to be parallel in {' '.join(languages)}. Use bitext, or "
        f'a parallel test set: {choices}; ud with treebanks = "PUD" (test); in built-in languages, dev or '
        f"test of any corpus."
    )


def is_parallel(
    corpus: str, split: str, languages: Sequence[str], treebanks: Mapping[str, str] | None = None
) -> bool:
    """Return whether a split is known to have translations of each other in these languages."""
    if len({is_built_in(language) for language in languages}) > 1:
        return False
    return split in _parallel_splits(corpus, languages, treebanks or {})


def _parallel_splits(
    corpus: str, languages: Sequence[str], treebanks: Mapping[str, str]
) -> tuple[Split, ...]:
    if any(is_built_in(language) for language in languages):
        return BUILT_IN_SPLITS
    name = corpus.partition(":")[0]
    if name == "ud":
        return ("test",) if all(_is_pud(treebanks.get(language, "")) for language in languages) else ()
    return PARALLEL_SPLITS.get(name, ())


def _is_pud(treebank: str) -> bool:
    """Return whether a treebank is Parallel UD (Zeman et al. 2017, Section 3).

    Treebanks are named like "PUD" or "ud-pud/UD_German-PUD".
    """
    return treebank.rpartition("/")[2].rpartition("-")[2].casefold() == "pud"


def match_by_id(
    first: Iterable[FirstExample],
    second: Iterable[SecondExample],
    *,
    names: tuple[str, str],
    partial: bool = False,
) -> list[tuple[FirstExample, SecondExample]]:
    """Pair the examples of two parallel sets by id, in the order of ``first``.

    ``names`` are the names of the two sets in messages. With ``partial``, skip examples without a counterpart
    and pairs with different labels (PAWS-X has a few of both).

    Raises DataError for a repeated id, or if no id is shared. Without ``partial``, also for any example to be
    skipped; with ``partial``, if more than ``MAX_LABEL_MISMATCH`` of the labels differ, because then the
    files are in different orders.
    """
    first_by_id = _index_by_id(first, names[0])
    second_by_id = _index_by_id(second, names[1])
    if not partial and first_by_id.keys() != second_by_id.keys():
        raise _not_parallel(names, first_by_id, second_by_id)
    pairs = [(example, second_by_id[key]) for key, example in first_by_id.items() if key in second_by_id]
    if not pairs:
        raise DataError(f"{names[0]} and {names[1]}: no id in common. Give two sets that are parallel.")
    mismatches = [example.id for example, match in pairs if _labels_differ(example, match)]
    if len(mismatches) > (MAX_LABEL_MISMATCH * len(pairs) if partial else 0):
        raise DataError(
            f"{names[0]} and {names[1]}: {len(mismatches)} of {len(pairs)} examples have different labels "
            f"(or numbers of options) under the same id (ids {some(mismatches)}). Check that both files have "
            f"the same rows in the same order, or skip the mismatches if they are few (partial)."
        )
    return [(example, match) for example, match in pairs if not _labels_differ(example, match)]


TARGET_AND_SOURCE = ("the target", "the source")
"""Names of the two languages of a mixed test set in messages."""


def mixed_pairs(
    target: Iterable[SentencePair], source: Iterable[SentencePair], *, side: Side = "random"
) -> list[SentencePair]:
    """Replace one text of each target pair by its source original.

    Raises DataError if the sets do not match.
    """

    def mix(pair: SentencePair, original: SentencePair) -> SentencePair:
        source_side = _random_side(pair.id) if side == "random" else side
        if source_side == "first":
            return replace(pair, first=original.first)
        return replace(pair, second=original.second)

    return [mix(*matched) for matched in match_by_id(target, source, names=TARGET_AND_SOURCE)]


def _random_side(pair_id: str) -> Side:
    """Draw a side that depends only on the pair's id."""
    return "second" if derive(0, "mixed", pair_id) % 2 else "first"


def mixed_questions(
    target: Iterable[Question], source: Iterable[Question], *, part: Part = "question"
) -> list[Question]:
    """Replace the question, or the passage and its answers, of each target example by its source original.

    Raises DataError if the sets do not match.
    """

    def mix(question: Question, original: Question) -> Question:
        if part == "question":
            return replace(question, question=original.question)
        return replace(original, question=question.question)

    return [mix(*matched) for matched in match_by_id(target, source, names=TARGET_AND_SOURCE)]


def _index_by_id(examples: Iterable[FirstExample], name: str) -> dict[str, FirstExample]:
    by_id: dict[str, FirstExample] = {}
    for example in examples:
        if example.id in by_id:
            raise DataError(
                f"{name}: the id {example.id!r} occurs twice, so examples cannot be matched by id."
            )
        by_id[example.id] = example
    return by_id


def _labels_differ(first: Example, second: Example) -> bool:
    """Return whether both examples have labels that differ.

    A missing label (None or "") matches any label. Choices also differ in their numbers of options.
    """
    match first, second:
        case Choice(), Choice():
            is_labelled = first.label is not None and second.label is not None
            return len(first.options) != len(second.options) or (is_labelled and first.label != second.label)
        case ((SentencePair() | LabelledText()), (SentencePair() | LabelledText())):
            labels = [
                frozenset(label) if isinstance(label, tuple) else label
                for label in (first.label, second.label)
            ]
            return labels[0] != labels[1] and "" not in labels
    return False


def _not_parallel(
    names: tuple[str, str], first: Mapping[str, object], second: Mapping[str, object]
) -> DataError:
    missing = [
        (names[0], names[1], [key for key in first if key not in second]),
        (names[1], names[0], [key for key in second if key not in first]),
    ]
    facts = [
        f"{len(ids)} of {name} are not in {other} (ids {some(ids)})" for name, other, ids in missing if ids
    ]
    return DataError(
        f"{names[0]} and {names[1]} are not parallel: {'; '.join(facts)}. Give test sets of the same "
        f"examples, or skip the others (partial)."
    )
