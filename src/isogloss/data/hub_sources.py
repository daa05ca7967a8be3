"""Which Hugging Face dataset holds which corpus, and which of its columns are what: as on their cards.

Labels come as their names (``hub_datasets`` has looked them up), never as numbers whose order one would
have to know.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from isogloss.core.errors import DataError
from isogloss.core.languages import NAMES, language_name
from isogloss.data.catalogue import CORPORA, MLQA
from isogloss.data.conllu import DEFAULTS, Ud
from isogloss.data.corpora import Corpus, Split
from isogloss.data.examples import Example, ParsedSentence, Question, SentencePair, TaggedSentence

Row = Mapping[str, Any]
Rows = Callable[[Iterable[Row], str], Iterator[Example]]
"""Gives the examples of a language from the rows."""

NO_LABEL = -1
"""What the hub puts where annotators did not agree."""

NOT_A_WORD = ("None", "_", None, "")
"""Heads of the rows of multi-word ranges and empty nodes."""

Splits = Mapping[Split, str]
"""What the hub calls our splits."""

ALL: Splits = {"train": "train", "dev": "validation", "test": "test"}
TRAIN_DEV: Splits = {"train": "train", "dev": "validation"}
DEV_TEST: Splits = {"dev": "validation", "test": "test"}


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A dataset that holds a corpus."""

    corpus: Corpus
    repository: str
    config: str
    """With ``{language}`` or its English ``{name}`` in it."""
    languages: str
    rows: Rows
    splits: Splits


@dataclass(frozen=True, kw_only=True)
class DatasetSplit:
    """One split of one language of a dataset."""

    dataset: Dataset
    language: str
    split: Split

    @property
    def corpus(self) -> Corpus:
        """The corpus in whose format it is given."""
        return self.dataset.corpus

    @property
    def config(self) -> str:
        """The dataset's config."""
        return self.dataset.config.format(language=self.language, name=language_name(self.language))

    @property
    def hub_split(self) -> str:
        """What the hub calls the split."""
        return self.dataset.splits[self.split]


@lru_cache(maxsize=1)
def dataset_splits() -> dict[str, DatasetSplit]:
    """Give what there is, by the path of the corpus's own file of that language and split."""
    return {
        dataset.corpus.path(language, split): DatasetSplit(dataset=dataset, language=language, split=split)
        for dataset in datasets()
        for language in dataset.languages.split()
        for split in dataset.splits
    }


def datasets() -> Iterator[Dataset]:
    """Give all datasets."""
    yield from _pairs()
    yield from _words()
    yield from _questions()


def _pairs() -> Iterator[Dataset]:
    nli = pairs("premise", "hypothesis")
    two = pairs("sentence1", "sentence2", {"not_equivalent": "0", "equivalent": "1"})
    multinli: Splits = {"train": "train", "dev": "validation_matched", "test": "validation_mismatched"}
    xnli = "ar bg de el en es fr hi ru sw th tr ur vi zh"
    yield _dataset("xnli", "facebook/xnli", "{language}", xnli, nli)
    yield _dataset("pawsx", "google-research-datasets/paws-x", "{language}", "de en es fr ja ko zh", two)
    yield _dataset("mrpc", "nyu-mll/glue", "mrpc", "en", two)
    yield _dataset("snli", "stanfordnlp/snli", "plain_text", "en", nli)
    yield _dataset("multinli", "nyu-mll/multi_nli", "default", "en", nli, multinli)


def _words() -> Iterator[Dataset]:
    udpos = (
        "af ar bg de el en es et eu fa fi fr he hi hu id it ja kk ko mr nl pt ru ta te th tl tr ur vi yo zh"
    )
    yield _dataset("wikiann", "unimelb-nlp/wikiann", "{language}", " ".join(NAMES), tagged("ner_tags"))
    yield _dataset("udpos", "google/xtreme", "udpos.{name}", udpos, tagged("pos_tags"))
    pud = "ar cs de en es fi fr hi id it ja ko pl pt ru th tr zh"
    treebanks = [*DEFAULTS.items(), *((language, "PUD") for language in pud.split())]
    for language, treebank in treebanks:
        yield Dataset(
            corpus=Ud(treebanks=((language, treebank),)),
            repository="universal-dependencies/universal_dependencies",
            config=f"{language}_{treebank.lower()}",
            languages=language,
            rows=parsed,
            splits={"test": "test"} if treebank == "PUD" else ALL,
        )


def _questions() -> Iterator[Dataset]:
    tydi = "google-research-datasets/tydiqa"
    xquad = "ar de el en es hi ro ru th tr vi zh"
    mlqa = "ar de en es hi vi zh"
    yield _dataset("squad", "rajpurkar/squad", "plain_text", "en", questions, TRAIN_DEV)
    yield _dataset("squad", "google/xquad", "xquad.{language}", xquad, questions, {"test": "validation"})
    yield _dataset("tydiqa", tydi, "secondary_task", "ar bn en fi id ko ru sw te", questions_by_id, TRAIN_DEV)
    for asked in mlqa.split():
        yield Dataset(
            corpus=replace(MLQA, questions=asked),
            repository="facebook/mlqa",
            config=f"mlqa.{{language}}.{asked}",
            languages=mlqa,
            rows=questions,
            splits=DEV_TEST,
        )


def _dataset(
    corpus: str, repository: str, config: str, languages: str, rows: Rows, splits: Splits = ALL
) -> Dataset:
    return Dataset(
        corpus=CORPORA[corpus],
        repository=repository,
        config=config,
        languages=languages,
        rows=rows,
        splits=splits,
    )


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
