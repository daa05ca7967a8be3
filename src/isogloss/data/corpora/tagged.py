"""Tagged sentences as lines: a word, a tab (or space), its tag; an empty line after each sentence.

XTREME's layout of WikiANN and of its part-of-speech corpus; the original WikiANN puts the language
and a colon before each word, Masakhane's corpora have a space.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, groupby
from typing import ClassVar, Literal

from isogloss.core.errors import DataError, did_you_mean
from isogloss.core.languages import spellings
from isogloss.data.corpus import (
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

SEPARATORS = {"\t": "tab", " ": "space"}


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
    separator: Literal["\t", " "] = "\t"
    """What stands between a word and its tag; of several spaces the last."""
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
        named = not file.plain_name.endswith((".tsv", ".txt"))
        prefixes = [f"{one}:" for one in spellings(language)] if named else [""]
        return nonempty(self._sentences(file, prefixes), file.name)

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Yield the lines of a file."""
        return with_byte_order_mark(self._lines(only(TaggedSentence, examples, self.name)))

    def _sentences(self, file: File, prefixes: Sequence[str]) -> Iterator[TaggedSentence]:
        """Read the sentences, numbered from 1; every word must begin with a prefix, which is removed."""
        numbers = count(1)
        for has_words, lines in groupby(file.lines(), key=lambda numbered: bool(numbered[1])):
            if has_words:
                rows = [self._row(file, number, line, prefixes) for number, line in lines]
                words, tags = zip(*rows, strict=True)
                yield TaggedSentence(id=str(next(numbers)), words=words, tags=tags)

    def _row(self, file: File, number: int, line: str, prefixes: Sequence[str]) -> tuple[str, str]:
        """Return the word and the tag of a line."""
        columns = line.split("\t") if self.separator == "\t" else line.rsplit(" ", 1)
        expected = f"a word, a {SEPARATORS[self.separator]} and its tag"
        if len(columns) != 2:
            raise file.broken(number, f"{len(columns)} columns in {line[:60]!r}", expected)
        word, tag = columns
        prefix = next((one for one in prefixes if word.startswith(one)), None)
        if prefix is None:
            raise file.broken(number, f"word {word!r}", f"{prefixes[0]!r} before each word")
        if word == prefix:
            raise file.broken(number, f"no word before tag {tag!r}", expected)
        if tag not in self.tags:
            raise _unknown(file, number, tag, self.tags)
        return word.removeprefix(prefix), tag

    def _lines(self, sentences: Iterable[TaggedSentence]) -> Iterator[str]:
        for sentence in sentences:
            words, tags = len(sentence.words), len(sentence.tags)
            if words != tags or not words or not all(sentence.words):
                raise cannot_write(
                    self.name,
                    sentence.id,
                    f"{words} words {sentence.words[:6]} and {tags} tags; expected as many, no empty word",
                )
            for word, tag in zip(sentence.words, sentence.tags, strict=True):
                if tag not in self.tags:
                    known = ", ".join(sorted(self.tags))
                    raise cannot_write(self.name, sentence.id, f"tag {tag!r}; expected one of {known}")
                yield f"{cell(word, self.name, sentence.id)}{self.separator}{tag}"
            yield ""


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
