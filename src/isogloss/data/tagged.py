"""Tagged sentences as lines: a word, a tab, its tag; an empty line after each sentence.

XTREME's layout of WikiANN and of its part-of-speech corpus; the original WikiANN puts the language
and a colon before each word.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from isogloss.core.errors import DataError, did_you_mean
from isogloss.data.corpora import (
    Layouts,
    Source,
    Split,
    cannot_write,
    cell,
    locate,
    nonempty,
    only,
    paths,
    with_byte_order_mark,
)
from isogloss.data.examples import Example, TaggedSentence
from isogloss.data.files import File, Folder


@dataclass(frozen=True, kw_only=True)
class TaggedCorpus:
    """A corpus of words with a tag each."""

    name: str
    tasks: tuple[str, ...]
    about: str
    url: str
    licence: str
    tags: tuple[str, ...]
    layouts: Layouts
    after_colon: ClassVar[str] = ""

    def path(self, language: str, split: Split) -> str:
        """Return the path in XTREME's layout."""
        return paths(self.layouts, language, split)[0]

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the one file of a split."""
        return locate(folder, self.name, self.layouts, language, split)

    def files(self, source: Source, language: str, split: Split) -> list[File]:
        """Return the files of one split."""
        return source.files(self, language, split)

    def read(self, source: Source, language: str, split: Split) -> Iterator[TaggedSentence]:
        """Read the sentences, numbered from 1; the original layout is known by its file names."""
        file = self.files(source, language, split)[0]
        prefix = "" if file.plain_name.endswith(".tsv") else f"{language}:"
        return nonempty(_sentences(file, self.tags, prefix), file.name)

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Yield the lines of a file in XTREME's layout."""
        return with_byte_order_mark(_lines(only(TaggedSentence, examples, self.name), self.name, self.tags))


def _sentences(file: File, allowed: Collection[str], prefix: str) -> Iterator[TaggedSentence]:
    """Read the sentences, numbered from 1; every word must begin with the prefix, which is removed."""
    number = 0
    words: list[str] = []
    tags: list[str] = []
    for line_number, line in file.lines():
        if line:
            word, tag = _columns(file, line_number, line, prefix)
            if tag not in allowed:
                raise _unknown(file, line_number, tag, allowed)
            words.append(word)
            tags.append(tag)
        elif words:
            number += 1
            yield TaggedSentence(id=str(number), words=tuple(words), tags=tuple(tags))
            words, tags = [], []
    if words:
        yield TaggedSentence(id=str(number + 1), words=tuple(words), tags=tuple(tags))


def _unknown(file: File, number: int, tag: str, allowed: Collection[str]) -> DataError:
    types = sorted({one.partition("-")[2] for one in allowed} - {""})
    found = tag.partition("-")[2].upper()
    advice = f"{did_you_mean(tag, allowed)} Correct the line".strip()
    if types and found and not found.startswith(tuple(types)):
        advice = (
            f"The task knows the types {', '.join(types)} alone: give the words of any other type the tag O, "
            f"or one of these types"
        )
    return file.broken(number, f"tag {tag!r}", f"one of {', '.join(sorted(allowed))}", advice)


def _lines(sentences: Iterable[TaggedSentence], corpus: str, allowed: Collection[str]) -> Iterator[str]:
    for sentence in sentences:
        words, tags = len(sentence.words), len(sentence.tags)
        if words != tags or not words or not all(sentence.words):
            raise cannot_write(
                corpus,
                sentence.id,
                f"{words} words {sentence.words[:6]} and {tags} tags; expected as many, and no empty word",
            )
        for word, tag in zip(sentence.words, sentence.tags, strict=True):
            if tag not in allowed:
                known = ", ".join(sorted(allowed))
                raise cannot_write(corpus, sentence.id, f"tag {tag!r}; expected one of {known}")
            yield f"{cell(word, corpus, sentence.id)}\t{tag}"
        yield ""


def _columns(file: File, number: int, line: str, prefix: str) -> tuple[str, str]:
    columns = line.split("\t")
    if len(columns) != 2:
        raise file.broken(number, f"{len(columns)} columns in {line[:60]!r}", "a word, a tab and its tag")
    word, tag = columns
    if not word.startswith(prefix):
        raise file.broken(number, f"word {word!r}", f"{prefix!r} before each word")
    if word == prefix:
        raise file.broken(number, f"no word before tag {tag!r}", "a word, a tab and its tag")
    return word.removeprefix(prefix), tag
