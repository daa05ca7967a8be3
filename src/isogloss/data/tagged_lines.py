"""Tagged sentences as lines: a word, a tab, its tag; an empty line after each sentence.

XTREME's layout of WikiANN and of its part-of-speech corpus; the original WikiANN puts the language
and a colon before each word.
"""

from collections.abc import Collection, Iterable, Iterator

from isogloss.core.errors import did_you_mean
from isogloss.data.corpora import cell, not_writable, with_mark
from isogloss.data.examples import TaggedSentence
from isogloss.data.files import File


def read_tagged(file: File, allowed: Collection[str], prefix: str = "") -> Iterator[TaggedSentence]:
    """Read the sentences, numbered from 1; every word must begin with the prefix, which is taken off."""
    number = 0
    words: list[str] = []
    tags: list[str] = []
    for line_number, line in file.lines():
        if line:
            word, tag = _columns(file, line_number, line, prefix)
            if tag not in allowed:
                near = did_you_mean(tag, allowed).strip()
                expected = f"one of {', '.join(sorted(allowed))}"
                raise file.broken(line_number, f"tag {tag!r}", expected, f"{near} Correct the line".strip())
            words.append(word)
            tags.append(tag)
        elif words:
            number += 1
            yield TaggedSentence(id=str(number), words=tuple(words), tags=tuple(tags))
            words, tags = [], []
    if words:
        yield TaggedSentence(id=str(number + 1), words=tuple(words), tags=tuple(tags))


def write_tagged(sentences: Iterable[TaggedSentence], corpus: str, allowed: Collection[str]) -> Iterator[str]:
    """Give the lines of a file, without the language before each word."""
    return with_mark(_lines(sentences, corpus, allowed))


def _lines(sentences: Iterable[TaggedSentence], corpus: str, allowed: Collection[str]) -> Iterator[str]:
    for sentence in sentences:
        words, tags = len(sentence.words), len(sentence.tags)
        if words != tags or not words or not all(sentence.words):
            raise not_writable(
                corpus,
                sentence.id,
                f"{words} words {sentence.words[:6]} and {tags} tags; expected as many, and no empty word",
            )
        for word, tag in zip(sentence.words, sentence.tags, strict=True):
            if tag not in allowed:
                known = ", ".join(sorted(allowed))
                raise not_writable(corpus, sentence.id, f"tag {tag!r}; expected one of {known}")
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
