"""Parallel examples: the splits that have them, their match by id, mixtures of two languages.

Parallel test sets have equal ids in all languages, and so have translations and their originals. Equal ids
alone prove nothing: many formats number their examples.

Mixed-language test sets put half of each example back in the source language (cross-lingual adjustment,
Section 4): the premise or the hypothesis of XNLI, at random; a question in one language about a passage in
the other, both ways. Which half of a pair it is depends on the id alone, so that it is the same half in
every target language.
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

PARALLEL: Mapping[str, tuple[Split, ...]] = {
    "xnli": ("dev", "test"),
    "pawsx": ("dev", "test"),
    "mlqa": ("dev", "test"),
    "squad": ("test",),  # XQuAD
}
"""Splits translated by people; any two languages of MLQA have some examples in common."""

BUILT_IN: tuple[Split, ...] = ("dev", "test")
"""Splits of every corpus of the built-in languages."""

PUD = "pud"
"""The treebank whose sentences are parallel in all languages (Zeman et al. 2017, Section 3)."""

MAX_LABEL_MISMATCH = 0.05
"""Share of labels that may differ between languages: in PAWS-X 8 of 1,994, in files of another order half."""

MIXED = "the target", "the source"
"""Names of the two mixed languages in messages."""

One = TypeVar("One", bound=Example)
Other = TypeVar("Other", bound=Example)

Side = Literal["random", "first", "second"]
"""The text of a pair that is back in the source language."""

Part = Literal["question", "passage"]
"""What of a question is back in the source language; answers are the passage's."""


def check_parallel(corpus: str, split: Split, languages: Sequence[str], treebanks: Mapping[str, str]) -> None:
    """Raise ConfigError unless a corpus's split is known to be parallel in these languages."""
    built_in = {is_built_in(language) for language in languages}
    if len(built_in) > 1:
        raise ConfigError(
            f"languages {' '.join(languages)}: some are built in and some are not, so they have no examples "
            f"in common. Name languages of one kind."
        )
    plain = corpus.partition(":")[0]
    parallel = BUILT_IN if True in built_in else PARALLEL.get(plain, ())
    if plain == "ud" and False in built_in:
        names = (treebanks.get(language, "").rpartition("/")[2].rpartition("-")[2] for language in languages)
        parallel = ("test",) if all(name.lower() == PUD for name in names) else ()
    if split not in parallel:
        choices = "; ".join(f"{name} ({', '.join(splits)})" for name, splits in sorted(PARALLEL.items()))
        raise ConfigError(
            f"{corpus!r}: its {split} split is not parallel in all languages, or not known to be. "
            f'Choose bitext, or a parallel test set: {choices}; ud with treebanks = "PUD" (test); of the '
            f"built-in languages dev or test of any."
        )


def matched(
    first: Iterable[One], second: Iterable[Other], *, names: tuple[str, str], partial: bool = False
) -> list[tuple[One, Other]]:
    """Return each example of the first with the one of the second that has its id, in the first's order.

    ``names`` are those of the two in messages. DataError for a repeated id, an example without a match, and
    a pair with different labels. With ``partial`` the latter two are left out (PAWS-X has some of both),
    unless so many labels differ that the files must be of another order.
    """
    by_id, others = _by_id(first, names[0]), _by_id(second, names[1])
    pairs = [(example, others[name]) for name, example in by_id.items() if name in others]
    if not partial and len(pairs) < max(len(by_id), len(others)):
        raise _not_parallel(names, by_id, others)
    if not pairs:
        raise DataError(f"{names[0]} and {names[1]}: no id in common. Take two that are parallel.")
    differ = [example.id for example, other in pairs if _labels_differ(example, other)]
    if len(differ) > (MAX_LABEL_MISMATCH * len(pairs) if partial else 0):
        raise DataError(
            f"{names[0]} and {names[1]}: {len(differ)} of {len(pairs)} examples have another label (or "
            f"number of options) in the one than in the other (ids {some(differ)}); expected the same "
            f"examples under the same ids. Check that both files have the same rows in the same order; a few "
            f"that differ can be left out (partial)."
        )
    return [(example, other) for example, other in pairs if not _labels_differ(example, other)]


def mixed_pairs(
    target: Iterable[SentencePair], source: Iterable[SentencePair], *, side: Side = "random"
) -> list[SentencePair]:
    """Put one text of each target pair back in the source language; DataError for what does not match."""
    return [
        replace(pair, first=original.first)
        if (_drawn(pair.id) if side == "random" else side) == "first"
        else replace(pair, second=original.second)
        for pair, original in matched(target, source, names=MIXED)
    ]


def _drawn(name: str) -> Side:
    """Draw the side of the pair with this id that is back in the source language."""
    return "second" if derive(0, "mixed", name) % 2 else "first"


def mixed_questions(
    target: Iterable[Question], source: Iterable[Question], *, part: Part = "question"
) -> list[Question]:
    """Put the question, or the passage with its answers, back in the source language."""
    return [
        replace(question, question=original.question)
        if part == "question"
        else replace(original, question=question.question)
        for question, original in matched(target, source, names=MIXED)
    ]


def _by_id(examples: Iterable[One], name: str) -> dict[str, One]:
    by_id: dict[str, One] = {}
    for example in examples:
        if by_id.setdefault(example.id, example) is not example:
            raise DataError(
                f"{name}: the id {example.id!r} occurs twice, so examples cannot be matched by it."
            )
    return by_id


def _labels_differ(first: Example, other: Example) -> bool:
    if isinstance(first, Choice) and isinstance(other, Choice):
        labels = {first.label, other.label} - {None}
        return len(labels) > 1 or len(first.options) != len(other.options)
    if isinstance(first, SentencePair | LabelledText) and isinstance(other, SentencePair | LabelledText):
        mine, yours = (
            frozenset(side.label) if isinstance(side.label, tuple) else side.label for side in (first, other)
        )
        return mine != yours and "" not in (mine, yours)
    return False


def _not_parallel(
    names: tuple[str, str], first: Mapping[str, object], other: Mapping[str, object]
) -> DataError:
    missing = (
        (names[0], names[1], [name for name in first if name not in other]),
        (names[1], names[0], [name for name in other if name not in first]),
    )
    facts = [
        f"{len(ids)} of {name} are not in {other} (ids {some(ids)})" for name, other, ids in missing if ids
    ]
    return DataError(
        f"{names[0]} and {names[1]} are not parallel: {'; '.join(facts)}. "
        f"Take test sets of the same examples, or only what both have (partial)."
    )
