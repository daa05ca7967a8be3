"""Rows of Hugging Face datasets as examples: which column is what, for each kind of example.

Columns are as the datasets' cards name them. Labels come as their names (``hub_datasets`` has looked them
up), never as numbers whose order one would have to know.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from isogloss.core.errors import DataError
from isogloss.core.languages import language_name
from isogloss.data.examples import Example, ParsedSentence, Question, SentencePair, TaggedSentence

Row = Mapping[str, Any]
Rows = Callable[[Iterable[Row], str], Iterator[Example]]
"""Gives the examples of a language from the rows."""

NO_LABEL = -1
"""What the hub puts where annotators did not agree."""

NOT_A_WORD = ("None", "_", None, "")
"""Heads of the rows of multi-word ranges and empty nodes."""


def pairs(first: str, second: str, names: Mapping[str, str] | None = None) -> Rows:
    """Read sentence pairs from two columns and ``label``, whose names may be other ones than ours."""

    def read(rows: Iterable[Row], _language: str) -> Iterator[SentencePair]:
        for number, row in enumerate(rows, start=1):
            label = row["label"]
            if label in (NO_LABEL, None):
                continue
            yield SentencePair(
                id=str(row.get("id") or number),
                first=_line(row[first]),
                second=_line(row[second]),
                label=(names or {}).get(str(label).lower(), str(label)),
            )

    return read


def tagged(tags: str) -> Rows:
    """Read tagged sentences from ``tokens`` and the column of tags; rows without words are left out."""

    def read(rows: Iterable[Row], _language: str) -> Iterator[TaggedSentence]:
        for number, row in enumerate(rows, start=1):
            if row["tokens"]:
                words = tuple(_line(word) for word in row["tokens"])
                yield TaggedSentence(id=str(number), words=words, tags=tuple(row[tags]))

    return read


def questions(rows: Iterable[Row], _language: str) -> Iterator[Question]:
    """Read questions with their passages and answers."""
    for row in rows:
        answers = zip(row["answers"]["answer_start"], row["answers"]["text"], strict=True)
        yield Question(id=row["id"], passage=row["context"], question=row["question"], answers=tuple(answers))


def questions_by_id(rows: Iterable[Row], language: str) -> Iterator[Question]:
    """Read the questions whose id begins with the English name of the language, as TyDi QA's do."""
    start = f"{language_name(language).lower()}-"
    return questions((row for row in rows if row["id"].startswith(start)), language)


def parsed(rows: Iterable[Row], _language: str) -> Iterator[ParsedSentence]:
    """Read trees; multi-word ranges and empty nodes, whose place the columns do not say, are left out."""
    for number, row in enumerate(rows, start=1):
        words = [place for place, head in enumerate(row["head"]) if head not in NOT_A_WORD]
        yield ParsedSentence(
            id=str(row.get("idx") or number),
            words=tuple(_line(row["tokens"][place]) for place in words),
            tags=tuple(row["upos"][place] for place in words),
            heads=tuple(int(row["head"][place]) for place in words),
            relations=tuple(row["deprel"][place] for place in words),
        )


def with_names(rows: Iterable[Row], names: Mapping[str, list[str]], where: str) -> Iterator[Row]:
    """Give each row with the names of its labels; DataError where there are numbers and no names."""
    for row in rows:
        named = {column: _named(row[column], known, where) for column, known in names.items()}
        for column in ("label", "ner_tags", "pos_tags", "upos"):
            if column in row and column not in names and _is_number(row[column]):
                raise DataError(
                    f"{where}: column {column!r} has numbers and the file does not name them. "
                    f"Save it with the datasets library, which keeps the names of labels."
                )
        yield {**row, **named}


def _named(value: Any, names: list[str], where: str) -> Any:
    if isinstance(value, list):
        return [_named(one, names, where) for one in value]
    if isinstance(value, str) or value is None or value == NO_LABEL:
        return value
    if not 0 <= value < len(names):
        raise DataError(f"{where}: label {value} of {len(names)} ({', '.join(names)}). Fetch it again.")
    return names[value]


def _is_number(value: Any) -> bool:
    return isinstance(value[0] if isinstance(value, list) and value else value, int)


def _line(text: str) -> str:
    """Put a text on one line: the corpora's own formats have no room for tabs and line ends."""
    return " ".join(text.split()) if any(sign in text for sign in "\t\n\r") else text
