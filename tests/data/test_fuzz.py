"""No file makes a reader fail but with a DataError that names the place, and what is read is sound.

Every corpus of the table is damaged here, in each layout that the fixtures have and in the one it writes.
"""

import fnmatch
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpus_fixtures import NATIVE
from damage import PACKINGS, damages
from drawn import LABELS, SAMPLES, find_kind, keep_parts
from isogloss.core.errors import DataError, InputError
from isogloss.core.languages import NAMES
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpora.texts_and_trees import Ud
from isogloss.data.corpus import SPLITS, Corpus, Split
from isogloss.data.examples import (
    ComparableText,
    Example,
    ParsedSentence,
    Question,
    SentencePair,
    TaggedSentence,
    TextLine,
    Translation,
)
from isogloss.data.files import DiskFolder, File
from isogloss.data.formats.conllu import OLD_UPOS, UPOS
from isogloss.data.formats.word_links import pair_words
from isogloss.features.parallel_text.bitext import WHOLES, Bitext
from trees import is_tree

VARIANTS: tuple[Corpus, ...] = (
    *CORPORA.values(),
    *(Bitext(collection=collection) for collection in WHOLES),
    replace(CORPORA["cad-nli"], collection="original"),
    Ud(treebanks=(("fr", "Sequoia"), ("ar", "ud-legacy/v1_UD_Arabic"))),
)

HELD = {name: find_kind(corpus) for name, corpus in CORPORA.items()}


@dataclass(frozen=True)
class Case:
    """A file to damage, those that are read with it, and what reads them."""

    corpus: Corpus
    language: str
    split: Split
    files: dict[str, bytes]
    damaged: str


def find_fixture_cases() -> Iterator[Case]:
    """Find every file of the fixtures that a corpus reads, without naming one."""
    english, *other_texts = languages_of_fixtures()
    pairs = [
        pair for other_text in other_texts for pair in (f"{english}-{other_text}", f"{other_text}-{english}")
    ]
    known_names: set[tuple[str, str]] = set()
    for corpus, language, split in product(VARIANTS, [english, *other_texts, *pairs], SPLITS):
        for case in _cases(corpus, language, split):
            if (corpus.name, case.damaged) not in known_names:
                yield case
            known_names.add((corpus.name, case.damaged))


@dataclass(frozen=True)
class Listed:
    """The fixtures as a folder that is listed once, because searching thousands of names takes long."""

    paths: dict[str, Path]
    name: str = "fixtures"
    found: dict[str, list[File]] = field(default_factory=dict)

    @cached_property
    def beginnings(self) -> set[str]:
        return {name[:end] for name in self.paths for end in range(len(name) + 1)}

    def find(self, patterns: Iterable[str]) -> list[File]:
        return next((value for value in (self.matching(element) for element in patterns) if value), [])

    def matching(self, pattern: str) -> list[File]:
        """Find the files of one pattern, cached because every collection of bitext needs them."""
        if pattern.partition("*")[0] not in self.beginnings:
            return []
        if pattern not in self.found:
            names = [pattern] if "*" not in pattern else fnmatch.filter(self.paths, pattern)
            inside = [name for name in sorted(names) if name.count("/") == pattern.count("/")]
            self.found[pattern] = [self._file(name) for name in inside if name in self.paths]
        return self.found[pattern]

    def files(self, corpus: Corpus, language: str, split: Split) -> list[File]:
        return corpus.find(self, language, split)

    def inside(self) -> list[str]:
        return []

    def _file(self, name: str) -> File:
        text = self.paths[name].read_text("utf-8-sig").removesuffix("\n")
        return File(name, lambda: iter(text.split("\n")), str)


def languages_of_fixtures() -> list[str]:
    """Give the codes in the names and headers of the files, English first."""
    texts = (path.read_text(encoding="utf-8").partition("\n")[0] for path in files_of_fixtures().values())
    words = {word for text in (*files_of_fixtures(), *texts) for word in re.split(r"[/._\t-]", text)}
    return ["en", *sorted(words & set(NAMES) - {"en"})]


def files_of_fixtures() -> dict[str, Path]:
    return {path.relative_to(NATIVE).as_posix(): path for path in NATIVE.rglob("*") if path.is_file()}


def _cases(corpus: Corpus, language: str, split: Split) -> Iterator[Case]:
    try:
        files = corpus.files(LISTED, language, split)
        list(corpus.read(LISTED, language, split))
    except InputError:
        return
    texts = {file.name: LISTED.paths[file.name].read_bytes() for file in files}
    for name in texts:
        yield Case(corpus, language, split, texts, name)


LISTED = Listed(files_of_fixtures())


def write_corpora() -> Iterator[Case]:
    """Let every corpus of the table write a file."""
    for file in HELD.values():
        if file:
            text = file.write(SAMPLES[file.kind])
            yield Case(file.corpus, file.language, file.splits[0], {file.path: text.encode()}, file.path)


WRITTEN = [file.path for file in HELD.values() if file]
FILES = sorted({*LISTED.paths, *WRITTEN})


@cache
def cases() -> tuple[Case, ...]:
    """Find all cases on first use: every corpus is tried in every language, which takes seconds."""
    return (*find_fixture_cases(), *write_corpora())


def cases_of(file: str) -> list[Case]:
    return [case for case in cases() if case.damaged == file]


@pytest.mark.parametrize("name", CORPORA)
def test_every_corpus_is_fuzzed(name):
    assert HELD[name], f"{name} gives back none of the samples in drawn.KINDS; add one of what it holds"


def test_every_file_of_the_fixtures_is_fuzzed():
    assert {case.damaged for case in cases()} == set(FILES)


def check_reading(case: Case, folder: Path) -> None:
    try:
        examples = list(case.corpus.read(DiskFolder(folder), case.language, case.split))
    except DataError as error:
        check_message(str(error), folder, case)
        return
    assert examples
    assert len({example.id for example in examples}) == len(examples)
    for item in examples:
        check_sound(item, case.corpus)
    if case.corpus.name == "bible":
        books = {(example.id.partition(" ")[0], example.document) for example in examples}
        assert len(books) == len({book for book, _ in books}) == len({document for _, document in books})
    plain_result = {example.label == "" for example in examples if isinstance(example, SentencePair)}
    assert plain_result in (set(), {False}) or (plain_result == {True} and case.split == "test")
    check_written_back(examples, case)


PLACE = re.compile(r"(\.gz|\.xz)?(:\d+|: (the file|data\[|question ).*?): ", re.DOTALL)
NOT_THERE = re.compile(r"(\.gz|\.xz)?(: no |: corpus ud has |: collection )")


def check_message(message: str, folder: Path, case: Case) -> None:
    """Check that the message can be printed, and names file and line, or else the missing thing."""
    assert message.encode()
    assert len(message) < 2000
    names = [str(folder / name) for name in case.files]
    file_texts = [message.removeprefix(name) for name in names if message.startswith(name)]
    remainder = file_texts[0] if file_texts else message.removeprefix(str(folder))
    assert remainder != message
    assert NOT_THERE.match(remainder) or (file_texts and PLACE.match(remainder)), message


def check_sound(example: Example, corpus: Corpus) -> None:
    assert example.id
    match example:
        case TaggedSentence():
            assert len(example.words) == len(example.tags) > 0
            assert all(example.words)
            assert set(example.tags) <= set(CORPORA["wikiann"].labels if "ner" in corpus.tasks else UPOS)
        case ParsedSentence():
            check_tree(example)
        case SentencePair():
            assert example.label in {"", *(label for task in corpus.tasks for label in LABELS[task])}
        case TextLine():
            assert example.text.strip() and "\n" not in example.text
            assert example.document >= 0
        case Translation():
            check_links(example)
        case ComparableText():
            assert example.first.strip() or example.second.strip()
        case Question():
            assert example.answers
            for start, text in example.answers:
                assert text and start >= 0 and example.passage[start:].startswith(text)
            for text in (example.id, example.question, example.passage):
                assert text.encode() is not None


def check_tree(sentence: ParsedSentence) -> None:
    count = len(sentence.words)
    assert len(sentence.tags) == len(sentence.heads) == len(sentence.relations) == count > 0
    assert all(sentence.words) and all(sentence.relations)
    assert set(sentence.tags) <= UPOS | OLD_UPOS
    assert is_tree(sentence.heads)


def check_links(pair: Translation) -> None:
    assert pair.first.strip() and pair.second.strip()
    first_word, second = pair_words(pair)
    for i, j in [*(pair.links or ()), *pair.possible]:
        assert 0 <= i < len(first_word) and 0 <= j < len(second)
    assert pair.links is not None or not pair.possible


def check_written_back(examples: list[Example], case: Case) -> None:
    """Check that the corpus's format preserves the examples, or reports that it cannot."""
    item = replace(HELD[case.corpus.name], corpus=case.corpus, language=case.language, splits=(case.split,))
    try:
        text = item.write(examples)
    except DataError as error:
        assert "cannot write" in str(error)
        return
    assert keep_parts(item.read_back(text)) == keep_parts(examples)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("damaged")


def put_case(place: Path, case: Case, suffix: str, text: bytes) -> Path:
    """Write the files of the case, the damaged one under the suffix."""
    folder = place / "data"
    if folder.exists():
        shutil.rmtree(folder)
    for name, whole_file in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name == case.damaged:
            path.with_name(path.name + suffix).write_bytes(text)
        else:
            path.write_bytes(whole_file)
    return folder


def fuzz(examples: int):
    return settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
@fuzz(10)
@given(damages=damages, packing=st.sampled_from(PACKINGS))
def test_damaged_file_gives_sound_examples_or_an_error_that_names_the_place(place, file, damages, packing):
    suffix, pack = packing
    for case in cases_of(file):
        text = case.files[file]
        for damage in damages:
            text = damage(text)
        check_reading(case, put_case(place, case, suffix, pack(text)))


@pytest.mark.parametrize("file", FILES)
@fuzz(6)
@given(text=st.binary(max_size=200), suffix=st.sampled_from(["", ".gz", ".xz"]))
def test_any_bytes_give_sound_examples_or_an_error_that_names_the_place(place, file, text, suffix):
    for case in cases_of(file):
        check_reading(case, put_case(place, case, suffix, text))
