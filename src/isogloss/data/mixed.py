"""Mixed-language test sets: half of each example back in the source language.

Cross-lingual adjustment, Section 4: the premise or the hypothesis of XNLI, at random; a question in one
language about a passage in the other, both ways. Any test set that is parallel will do: examples are matched
by their ids. Which half of a pair it is depends on the seed and the id alone, so that it is the same half in
every target language.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from isogloss.core.seeds import derive
from isogloss.data.examples import Question, SentencePair
from isogloss.data.matching import matched

Side = Literal["random", "first", "second"]
"""The text of a pair that is back in the source language."""

Part = Literal["question", "passage"]
"""What of a question is back in the source language; answers are the passage's."""


def mixed_pairs(
    target: Iterable[SentencePair],
    source: Iterable[SentencePair],
    *,
    side: Side = "random",
    seed: int = 0,
    names: tuple[str, str] = ("the target", "the source"),
    partial: bool = False,
) -> list[SentencePair]:
    """Put one text of each target pair back in the source language; DataError for what does not match."""
    return [
        replace(one, first=other.first)
        if side_of(one.id, side=side, seed=seed) == "first"
        else replace(one, second=other.second)
        for one, other in matched(target, source, names=names, partial=partial)
    ]


def side_of(name: str, *, side: Side, seed: int) -> Side:
    """Return the side of the pair with this id that is back in the source language."""
    if side != "random":
        return side
    return "second" if derive(seed, "mixed", name) % 2 else "first"


def mixed_questions(
    target: Iterable[Question],
    source: Iterable[Question],
    *,
    part: Part = "question",
    names: tuple[str, str] = ("the target", "the source"),
    partial: bool = False,
) -> list[Question]:
    """Put the question, or the passage with its answers, back in the source language."""
    return [
        replace(one, question=other.question) if part == "question" else replace(other, question=one.question)
        for one, other in matched(target, source, names=names, partial=partial)
    ]
