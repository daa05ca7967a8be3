"""Each corpus gives, in each language and split, the examples on record: fixtures, built-in, real corpora.

Where a change is meant, `python tests/data/test_golden_readings.py [FOLDER OF THE REAL CORPORA]` records the
cases of golden_readings.json again. A new case is added there by hand, with "" for its reading.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from itertools import count, islice
from pathlib import Path

import pytest

from isogloss.data.corpora.own import list_shipped
from isogloss.data.corpus import Corpus, Source
from isogloss.data.files import DiskFolder, File
from isogloss.data.sources import Sources
from isogloss.features.built_in_languages import BuiltInLanguages
from isogloss.features.described_corpora.descriptions import describe_corpus
from isogloss.features.translation.example_files import example_line

GOLDEN = Path(__file__).with_name("golden_readings.json")
"""By source and "corpus language split": the number of the first examples, and a digest of them."""
RECORDED = json.loads(GOLDEN.read_text(encoding="utf-8"))
FIRST = 100
"""Maximum examples: all of a fixture. For real corpora, benchmarks/corpora.py counts and rewrites all."""
FIXTURES = DiskFolder(Path(__file__).with_name("fixtures"))
COMPANIONS = ("bucc2018/de-en/de-en.sample", "bitext/train.en-fr", "word-alignment/enfr", "tatoeba.deu-eng")
"""Files that are read together with those found for a split."""


def parametrize_corpora(source: str) -> pytest.MarkDecorator:
    """Parametrize a test by the recorded cases of a source, a corpus at a time."""
    names = dict.fromkeys(case.split()[0] for case in RECORDED[source])
    cases = [[case for case in RECORDED[source] if case.split()[0] == name] for name in names]
    return pytest.mark.parametrize("cases", cases, ids=list(names))


@parametrize_corpora("fixtures")
def test_a_fixture_reads_as_recorded(cases):
    assert readings(cases, FIXTURES) == {case: RECORDED["fixtures"][case] for case in cases}


@pytest.mark.slow
@parametrize_corpora("built-in")
def test_a_built_in_corpus_reads_as_recorded(cases):
    assert readings(cases, BuiltInLanguages()) == {case: RECORDED["built-in"][case] for case in cases}


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.data
@parametrize_corpora("real")
def test_a_real_corpus_reads_as_recorded(cases, real_data):
    folder = ReadOnce(real_data.path)
    assert readings(cases, folder) == {case: RECORDED["real"][case] for case in cases}


class ReadOnce(DiskFolder):
    """A folder whose names are listed once, and whose files are unpacked once for all languages."""

    @cached_property
    def known(self) -> dict[str, list[File]]:
        return {}

    def find(self, patterns: Iterable[str]) -> list[File]:
        for pattern in patterns:
            if pattern not in self.known:
                files = super().find([pattern])
                self.known[pattern] = [replace(file, read=Lines(file.read()).__iter__) for file in files]
            if self.known[pattern]:
                return self.known[pattern]
        return []


@dataclass(frozen=True)
class Lines:
    """Lines that are kept as far as they were read."""

    rest: Iterator[str]
    kept: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[str]:
        for number in count():
            if number == len(self.kept):
                if (line := next(self.rest, None)) is None:
                    return
                self.kept.append(line)
            yield self.kept[number]


def test_no_fixture_is_left_unread():
    read = {
        file.name
        for case in RECORDED["fixtures"]
        for file in corpus(case, FIXTURES).files(FIXTURES, *case.split()[1:])
    }
    on_disk = {str(path) for path in FIXTURES.path.rglob("*") if path.is_file()}
    assert not {path for path in on_disk - read if not any(name in path for name in COMPANIONS)}


def readings(cases: list[str], source: Source) -> dict[str, str]:
    """Return, by case, the number of the first examples and a digest of them."""
    return {case: reading(case, source) for case in cases}


def reading(case: str, source: Source) -> str:
    examples = list(islice(corpus(case, source).read(source, *case.split()[1:]), FIRST))
    text = "\n".join(map(example_line, examples))
    return f"{len(examples)} {sha256(text.encode()).hexdigest()[:12]}"


def corpus(case: str, source: Source) -> Corpus:
    """Return the corpus of a case, such as "ud@sequoia" for a treebank."""
    name, language, _ = case.split()
    corpus_name, _, treebank = name.partition("@")
    if corpus_name in list_shipped():
        return describe_corpus(list_shipped()[corpus_name], str(source.path))
    return Sources().corpus(corpus_name, ((language, treebank),) if treebank else ())


if __name__ == "__main__":
    sources = {"fixtures": FIXTURES, "built-in": BuiltInLanguages()}
    if sys.argv[1:]:
        sources["real"] = DiskFolder(Path(sys.argv[1]))
    RECORDED |= {name: readings(RECORDED[name], source) for name, source in sources.items()}
    GOLDEN.write_text(json.dumps(RECORDED, indent=1) + "\n", encoding="utf-8")
