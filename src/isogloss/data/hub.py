"""Hugging Face datasets as a source: files in the corpora's native formats, made when they are read.

Readers, fingerprints and runs treat them as files on disk. Only parquet files are read, from the branch into
which the hub converts every dataset or from a local folder of the same layout: no code that comes with a
dataset is ever run. Labels are read by name, never as numbers whose order would have to be known.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from isogloss.core.errors import ConfigError, DataError, one_line
from isogloss.core.languages import NAMES, language_name
from isogloss.data.corpora.catalogue import CORPORA, MLQA
from isogloss.data.corpora.treebanks import DEFAULTS, Ud
from isogloss.data.corpus import SPLITS, Corpus, Source, Split, not_there
from isogloss.data.examples import Example, ParsedSentence, Question, SentencePair, TaggedSentence
from isogloss.data.files import DiskFolder, File

if TYPE_CHECKING:
    from datasets import Dataset, DatasetBuilder

HUB = "hub"
"""``--data hub`` is the hub; ``hub:DIR`` is a folder with parquet files of datasets."""

CONVERTED = "refs/convert/parquet"
"""The branch of a dataset where the hub keeps it as CONFIG/SPLIT/NNNN.parquet."""

LAYOUTS = ("{config}/{split}/*.parquet", "{config}/{split}-*.parquet", "{config}/*-{split}.parquet")
"""Parquet files in the folder of a dataset: on that branch, as saved now, as saved earlier."""

VERSION = 1
"""Part of the fingerprints; raise it when rows give other lines than before."""

NO_LABEL = -1
"""The hub's label where annotators did not agree."""

NOT_A_WORD = ("None", "_", None, "")
"""Heads of the rows of multi-word ranges and empty nodes."""

Found = TypeVar("Found")
Row = Mapping[str, Any]
ReadRows = Callable[[Iterable[Row], str], Iterator[Example]]
"""From rows and a language to examples."""

Splits = Mapping[Split, str]
"""The hub's names of our splits."""

ALL: Splits = {"train": "train", "dev": "validation", "test": "test"}
TRAIN_DEV: Splits = {"train": "train", "dev": "validation"}
DEV_TEST: Splits = {"dev": "validation", "test": "test"}


@dataclass(frozen=True, kw_only=True)
class HubSplit:
    """One split of one language of a dataset that holds a corpus."""

    corpus: Corpus
    repository: str
    config: str
    language: str
    split: Split
    hub_split: str
    rows: ReadRows


def data_source(text: str) -> Source | None:
    """Return the source that ``--data`` names: none, the hub, parquet files of it, or a folder of corpora."""
    if not text:
        return None
    kind, colon, path = text.partition(":")
    if kind == HUB and (path or not colon):
        return HubDatasets(DiskFolder(Path(path)) if path else None)
    return DiskFolder(Path(text))


@dataclass(frozen=True)
class HubDatasets:
    """Corpora of the hub; with ``local``, only those whose parquet files are there."""

    local: DiskFolder | None = None

    def __post_init__(self) -> None:
        library()

    @property
    def name(self) -> str:
        """Name in messages."""
        return f"{HUB}:{self.local.name}" if self.local else "the Hugging Face hub"

    def files(self, corpus: Corpus, language: str, split: Split) -> list[File]:
        """Return the one file of a split, which is made when it is read."""
        if isinstance(corpus, Ud) and not corpus.named(language):
            corpus = Ud(treebanks=((language, "PUD"),))  # The only one that the hub has beside the defaults.
        path = corpus.path(language, split)
        found = hub_splits().get(path)
        if found is None or not self._has(found):
            known = [one for one in self._known() if one.corpus.name == corpus.name]
            there = {split: sorted({one.language for one in known if one.split == split}) for split in SPLITS}
            raise not_there(self, corpus.name, language, split, there=there)
        return [self._file(path, found)]

    def inside(self) -> list[str]:
        """Return the names of the corpora that are there."""
        return sorted({one.corpus.name for one in self._known()})

    def _known(self) -> list[HubSplit]:
        return [one for one in hub_splits().values() if self._has(one)]

    def _has(self, one: HubSplit) -> bool:
        return self.local is None or bool(_parquet(self.local, one))

    def _file(self, path: str, one: HubSplit) -> File:
        name = f"{self.name}/{one.repository}/{one.config}/{one.hub_split} as {path}"

        def read() -> Iterator[str]:
            dataset = _streamed(self.local, one, name) if self.local else _downloaded(one, name)
            for line in one.corpus.write(_examples(one, _rows(dataset, name), name), one.language):
                yield line + "\n"

        def fingerprint() -> str:
            facts = (HUB, str(VERSION), one.repository, one.config, one.hub_split, one.language)
            if self.local:
                version = "+".join(file.fingerprint() for file in _parquet(self.local, one))
            else:  # The commit of the branch, which the library has looked up.
                version = str(remote_builder(one.repository, one.config, one.hub_split, name).hash)
            return sha256("\n".join((*facts, version)).encode()).hexdigest()

        return File(name, read, fingerprint)


def _examples(one: HubSplit, rows: Iterator[Row], name: str) -> Iterator[Example]:
    examples = one.rows(rows, one.language)
    while True:
        try:
            example = next(examples, None)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise DataError(
                f"{name}: its columns are not those of {one.repository} "
                f"({one_line(error)}). Look at the dataset's card; save it with these columns."
            ) from error
        if example is None:
            return
        yield example


def _parquet(local: DiskFolder, one: HubSplit) -> list[File]:
    return local.find(
        f"{folder}/{layout.format(config=one.config, split=one.hub_split)}"
        for folder in (one.repository, one.repository.rpartition("/")[2])
        for layout in LAYOUTS
    )


def _streamed(local: DiskFolder, one: HubSplit, name: str) -> "Dataset":
    """Return the rows of parquet files on disk; nothing is written to the library's cache."""
    files = {one.hub_split: [file.name for file in _parquet(local, one)]}
    builder = attempt(name, lambda: library().load_dataset_builder("parquet", data_files=files))
    return attempt(name, lambda: builder.as_streaming_dataset(one.hub_split))


def _downloaded(one: HubSplit, name: str) -> "Dataset":
    """Return the rows of the hub, which the library downloads once."""
    builder = remote_builder(one.repository, one.config, one.hub_split, name)
    attempt(name, builder.download_and_prepare)
    return attempt(name, lambda: builder.as_dataset(split=one.hub_split))


@lru_cache(maxsize=256)
def remote_builder(repository: str, config: str, split: str, name: str) -> "DatasetBuilder":
    """Return the library's builder of a dataset's converted files."""
    files = {split: f"{config}/{split}/*.parquet"}
    return attempt(
        name, lambda: library().load_dataset_builder(repository, data_files=files, revision=CONVERTED)
    )


def _rows(dataset: "Dataset", name: str) -> Iterator[Row]:
    names = {column: names_of(kind) for column, kind in (dataset.features or {}).items()}
    rows = iter(dataset)
    while (row := attempt(name, lambda: next(rows, None))) is not None:
        yield _with_label_names(row, {column: known for column, known in names.items() if known}, name)


def names_of(kind: object) -> list[str]:
    """Return the names of a label's values, also of a list of labels; none for any other column."""
    return list(getattr(kind, "names", None) or getattr(getattr(kind, "feature", None), "names", None) or ())


def _with_label_names(row: Row, names: Mapping[str, list[str]], where: str) -> Row:
    """Replace labels by their names; DataError where there are numbers and no names."""
    for column in ("label", "ner_tags", "pos_tags", "upos"):
        if column in row and column not in names and _is_number(row[column]):
            raise DataError(
                f"{where}: column {column!r} has numbers and the file does not name them. "
                f"Save it with the datasets library, which keeps the names of labels."
            )
    return {**row, **{column: named(row[column], known, where) for column, known in names.items()}}


def named(value: Any, names: list[str], where: str) -> object:
    """Return the name of a label, or those of a list; DataError for a number that has none."""
    if isinstance(value, list):
        return [named(one, names, where) for one in value]
    if isinstance(value, str) or value is None or value == NO_LABEL:
        return value
    if not 0 <= value < len(names):
        raise DataError(f"{where}: label {value} of {len(names)} ({', '.join(names)}). Fetch it again.")
    return names[value]


def _is_number(value: object) -> bool:
    return isinstance(value[0] if isinstance(value, list) and value else value, int)


FETCH = (
    "Look whether the dataset is there and the network is; or fetch the corpus's official files: isogloss "
    "fetch."
)


def attempt(name: str, call: Callable[[], Found], advice: str = FETCH) -> Found:
    """Call the library; DataError, in one line, where it fails."""
    # It raises RuntimeError for a dataset that is a script.
    errors = (OSError, ValueError, KeyError, TypeError, RuntimeError, library().exceptions.DatasetsError)
    try:
        return call()
    except errors as error:
        raise DataError(f"{name}: it cannot be read ({one_line(error):.250}). {advice}") from error


def library() -> Any:
    """Return the library datasets; ConfigError where it is not installed."""
    try:
        import datasets
    except ImportError as error:
        raise ConfigError(
            f"{HUB}: the library datasets is not installed. Install it: pip install "
            f'"isogloss[hub]"; or fetch the official files: isogloss fetch.'
        ) from error
    return datasets


@lru_cache(maxsize=1)
def hub_splits() -> dict[str, HubSplit]:
    """Return all splits by the path of the corpus's own file of that language and split."""
    return {one.corpus.path(one.language, one.split): one for one in (*_pairs(), *_words(), *_questions())}


def _pairs() -> Iterator[HubSplit]:
    nli = pairs("premise", "hypothesis")
    two = pairs("sentence1", "sentence2", {"not_equivalent": "0", "equivalent": "1"})
    multinli: Splits = {"train": "train", "dev": "validation_matched", "test": "validation_mismatched"}
    xnli = "ar bg de el en es fr hi ru sw th tr ur vi zh"
    yield from _dataset("xnli", "facebook/xnli:{language}", xnli, nli)
    yield from _dataset("pawsx", "google-research-datasets/paws-x:{language}", "de en es fr ja ko zh", two)
    yield from _dataset("mrpc", "nyu-mll/glue:mrpc", "en", two)
    yield from _dataset("snli", "stanfordnlp/snli:plain_text", "en", nli)
    yield from _dataset("multinli", "nyu-mll/multi_nli:default", "en", nli, multinli)


def _words() -> Iterator[HubSplit]:
    udpos = (
        "af ar bg de el en es et eu fa fi fr he hi hu id it ja kk ko mr nl pt ru ta te th tl tr ur vi yo zh"
    )
    yield from _dataset("wikiann", "unimelb-nlp/wikiann:{language}", " ".join(NAMES), tagged("ner_tags"))
    yield from _dataset("udpos", "google/xtreme:udpos.{name}", udpos, tagged("pos_tags"))
    pud = "ar cs de en es fi fr hi id it ja ko pl pt ru th tr zh"
    for language, treebank in (*DEFAULTS.items(), *((language, "PUD") for language in pud.split())):
        dataset = f"universal-dependencies/universal_dependencies:{language}_{treebank.lower()}"
        splits: Splits = {"test": "test"} if treebank == "PUD" else ALL
        yield from _dataset(Ud(treebanks=((language, treebank),)), dataset, language, parsed, splits)


def _questions() -> Iterator[HubSplit]:
    tydiqa, tydi = "google-research-datasets/tydiqa:secondary_task", "ar bn en fi id ko ru sw te"
    xquad, mlqa = "ar de el en es hi ro ru th tr vi zh", "ar de en es hi vi zh"
    yield from _dataset("squad", "rajpurkar/squad:plain_text", "en", questions, TRAIN_DEV)
    yield from _dataset("squad", "google/xquad:xquad.{language}", xquad, questions, {"test": "validation"})
    yield from _dataset("tydiqa", tydiqa, tydi, questions_by_id, TRAIN_DEV)
    for asked in mlqa.split():
        corpus, dataset = replace(MLQA, questions=asked), f"facebook/mlqa:mlqa.{{language}}.{asked}"
        yield from _dataset(corpus, dataset, mlqa, questions, DEV_TEST)


def _dataset(
    corpus: str | Corpus, dataset: str, languages: str, rows: ReadRows, splits: Splits = ALL
) -> Iterator[HubSplit]:
    """Yield the splits of REPOSITORY:CONFIG, which has ``{language}`` or its English ``{name}`` in it."""
    repository, _, config = dataset.partition(":")
    for language in languages.split():
        for split, hub_split in splits.items():
            yield HubSplit(
                corpus=CORPORA[corpus] if isinstance(corpus, str) else corpus,
                repository=repository,
                config=config.format(language=language, name=language_name(language)),
                language=language,
                split=split,
                hub_split=hub_split,
                rows=rows,
            )


def pairs(first: str, second: str, names: Mapping[str, str] | None = None) -> ReadRows:
    """Read sentence pairs from two columns and ``label``; ``names`` are ours by the hub's."""

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


def tagged(tags: str) -> ReadRows:
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
    """Read trees; multi-word ranges and empty nodes, whose position the columns do not say, are left out."""
    for number, row in enumerate(rows, start=1):
        words = [index for index, head in enumerate(row["head"]) if head not in NOT_A_WORD]
        yield ParsedSentence(
            id=str(row.get("idx") or number),
            words=tuple(_line(row["tokens"][index]) for index in words),
            tags=tuple(row["upos"][index] for index in words),
            heads=tuple(int(row["head"][index]) for index in words),
            relations=tuple(row["deprel"][index] for index in words),
        )


def _line(text: str) -> str:
    """Put a text on one line: the corpora's own formats have no room for tabs and line ends."""
    return " ".join(text.split()) if any(sign in text for sign in "\t\n\r") else text
