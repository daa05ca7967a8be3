"""Read every real corpus whole, compare with the counts of its SOURCE.md, write it back; print Markdown.

    python benchmarks/corpora.py --data DIR > docs/results/corpora/README.md     # about three minutes
    python benchmarks/corpora.py --data DIR --only panx --only xquad

Speed is examples a second of process time on one core, with decompression.
"""

import argparse
import fnmatch
import platform
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from isogloss.data.corpus import Corpus, Source, Split
from isogloss.data.examples import Example, SentencePair, TextLine
from isogloss.data.files import DiskFolder, File
from stated import Check, checks, places

HEADING = """# Every real corpus, read whole

```
python benchmarks/corpora.py --data DIR > docs/results/corpora/README.md
```

`DIR` holds the corpora, each with a `SOURCE.md` that states what is in it. *Read* is what the reader gives,
*stated* is the number found in the text of `SOURCE.md` (– where it states none). Each file or language is
then written in the format that `Corpus.write` makes:

- **bytes**: what is written is the file on disk, byte for byte (after decompression);
- **bytes but empty lines**: all lines are equal, byte for byte; how many empty ones part them, or end the
  file, is not kept;
- **data**: the format written is another than the one on disk, and reading it gives equal examples;
- **data, new ids**: as data, but the format written has no ids, so rows come back numbered.

Counts are sentences / words of treebanks and XTREME's tags, documents / lines of raw text, else sentences,
pairs, questions or verses. Speed is examples a second of process time on one core, with decompression."""

WHY_NOT_BYTES = """
Where bytes cannot be equal, and why: XNLI's official file holds all languages in 19 columns, and what is
written is XTREME's file of one language; PAWS-X, MRPC, SNLI and SICK have ids, headers or columns that their
plain table here has not; SQuAD's JSON has white space, keys and an order of keys that vary; the
tables of the Bible and of TICO-19 hold many languages, and what is written has one or two; Tatoeba's two
files and the gold alignments (counted from 1) become one table with links counted from 0."""

MEMORY = """
## Memory

Peak of what is allocated while the largest file of each folder is read: its lines alone (decompressing .xz
takes up to 67 MB, whatever the file), and examples taken one by one and dropped. JSON is parsed whole;
tables, treebanks and pairs keep the ids that they have seen, so that each is its own; all else takes the same
whatever the size.
"""


@dataclass(frozen=True)
class Found:
    """What reading and writing back came to."""

    check: Check
    read: str
    written: str
    examples: int
    seconds: float

    @property
    def equal(self) -> str:
        return "–" if not self.check.stated else "yes" if self.read == self.check.stated else "NO"

    @property
    def sound(self) -> bool:
        """Whether counts are equal where stated, and nothing was lost in writing."""
        return self.equal != "NO" and self.written != "LOST"


def look(folder: DiskFolder, check: Check) -> Found:
    """Read, count, write back, compare."""
    place = Behind(folder, check.path)
    started = time.process_time()
    examples = _read(place, check)
    seconds = time.process_time() - started
    return Found(check, check.count(examples), written_back(place, check, examples), len(examples), seconds)


def written_back(folder: Source, check: Check, examples: Sequence[Example]) -> str:
    """Write the examples and say what is equal to what was on disk: its bytes, or its data."""
    corpus, language, split = check.corpus, check.language, check.splits[0]
    text = "".join(line + "\n" for line in corpus.write(examples, language))
    whole = "".join("".join(file.read()) for file in corpus.files(folder, language, split))
    if text == whole:
        return "bytes"
    if list(filter(None, text.split("\n"))) == list(filter(None, whole.split("\n"))):
        return "bytes but empty lines"
    back = _read(Written({corpus.path(language, split): text}), check)
    if back == examples:
        return "data"
    return "data, new ids" if _without_ids(back) == _without_ids(examples) else "LOST"


@dataclass(frozen=True)
class Written:
    """Texts as a folder."""

    texts: dict[str, str]
    name: str = "written"

    def find(self, patterns: Iterable[str]) -> list[File]:
        found = [name for pattern in patterns for name in fnmatch.filter(self.texts, pattern)]
        return [_file(name, self.texts[name]) for name in found[:1]]

    def files(self, corpus: Corpus, language: str, split: Split) -> list[File]:
        return corpus.find(self, language, split)

    def inside(self) -> list[str]:
        return sorted(self.texts)


@dataclass(frozen=True)
class Behind:
    """A folder of which only paths with a certain part are seen."""

    folder: DiskFolder
    part: str

    @property
    def name(self) -> str:
        return self.folder.name

    def find(self, patterns: Iterable[str]) -> list[File]:
        return self.folder.find(pattern for pattern in patterns if self.part in pattern)

    def files(self, corpus: Corpus, language: str, split: Split) -> list[File]:
        return corpus.find(self, language, split)

    def inside(self) -> list[str]:
        return self.folder.inside()


def _file(name: str, text: str) -> File:
    return File(name, lambda: iter(text.removesuffix("\n").split("\n")), str)


def _read(folder: Source, check: Check) -> list[Example]:
    return [one for split in check.splits for one in check.corpus.read(folder, check.language, split)]


def _without_ids(examples: Sequence[Example]) -> list[Example]:
    documents: dict[int, int] = {}
    return [_without_id(one, documents) for one in examples]


def _without_id(one: Example, documents: dict[int, int]) -> Example:
    if isinstance(one, TextLine):
        return replace(one, id="", document=documents.setdefault(one.document, len(documents)))
    return replace(one, id="") if isinstance(one, SentencePair) else one


def peak(read: Callable[[], Iterable[object]]) -> int:
    """Measure the peak of bytes allocated while what is read is taken one by one and dropped."""
    tracemalloc.start()
    for _ in read():
        pass
    highest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return highest


def summary(results: Sequence[Found], absent: Sequence[Check]) -> Iterator[str]:
    """Give a row for each folder."""
    yield "| folder | read with | files or pairs | counts equal | stated nothing | written back | speed |"
    yield "|---|---|---|---|---|---|---|"
    for place in dict.fromkeys(found.check.place for found in results):
        of = [found for found in results if found.check.place == place]
        equal, unstated = (sum(found.equal == what for found in of) for what in ("yes", "–"))
        written = ", ".join(
            f"{how} {sum(found.written == how for found in of)}"
            for how in dict.fromkeys(f.written for f in of)
        )
        corpora = ", ".join(dict.fromkeys(found.check.corpus.name for found in of))
        cells = (
            place,
            corpora,
            len(of),
            f"{equal} of {len(of) - unstated}",
            unstated or "",
            written,
            _speed(of),
        )
        yield "| " + " | ".join(map(str, cells)) + " |"
    lost = [found for found in results if not found.sound]
    yield ""
    yield f"{len(results)} read, {len(lost)} of them with another count than stated or lost in writing."
    if absent:
        names = ", ".join(f"{one.place} {one.of or one.language} {one.split}" for one in absent)
        yield f"Stated in a SOURCE.md but not in the folder: {names}."


def rows(results: Sequence[Found]) -> Iterator[str]:
    """Give a row for each file or language."""
    yield "| folder | of | language | split | read | stated | equal | written back | examples/s |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for found in results:
        check = found.check
        where = (check.place, check.of or check.corpus.name, check.language, check.split)
        cells = (found.read, check.stated or "–", found.equal, found.written, _speed([found]))
        yield "| " + " | ".join((*where, *cells)) + " |"


def _speed(results: Sequence[Found]) -> str:
    """Give examples a second, to two figures."""
    rate = sum(found.examples for found in results) / max(sum(found.seconds for found in results), 1e-6)
    return f"{float(f'{rate:.2g}'):,.0f}"


def memory(folder: DiskFolder, largest: Sequence[Found]) -> Iterator[str]:
    """Give a row for each of the largest."""
    yield "| folder | language | split | examples | million characters | lines, MB | examples, MB |"
    yield "|---|---|---|---|---|---|---|"
    for check in (found.check for found in largest):
        language, split = check.language, check.splits[0]
        files = check.corpus.files(folder, language, split)
        size = sum(len(line) for file in files for line in file.read())
        lines = max(peak(file.read) for file in files)
        examples = peak(partial(check.corpus.read, folder, language, split))
        count = sum(1 for _ in check.corpus.read(folder, language, split))
        cells = (check.place, language, split, f"{count:,}", f"{size / 1e6:.1f}")
        yield "| " + " | ".join((*cells, f"{lines / 1e6:.1f}", f"{examples / 1e6:.1f}")) + " |"


def _largest(results: Sequence[Found]) -> list[Found]:
    """Give what has most examples of each folder."""
    most: dict[str, Found] = {}
    for found in results:
        known = most.setdefault(found.check.place, found)
        if found.examples > known.examples:
            most[found.check.place] = found
    return list(most.values())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the real corpora")
    parser.add_argument("--only", action="append", default=[], help="a folder below it; may be given often")
    asked = parser.parse_args()
    folder = DiskFolder(asked.data)
    known = [one for place in asked.only or places(folder) for one in checks(folder, place)]
    absent = [one for one in known if one.named and not one.is_there(folder)]
    results = []
    for one in known:
        if one.is_there(folder):
            results.append(look(folder, one))
            print(one.place, one.of, one.language, one.split, results[-1].written, file=sys.stderr)
    made = f"Made with Python {platform.python_version()} on {platform.system()} {platform.machine()}."
    print(HEADING, made, "", *summary(results, absent), WHY_NOT_BYTES, MEMORY, sep="\n")
    print(*memory(folder, _largest(results)), "", "## All files", "", *rows(results), sep="\n")
    return int(any(not found.sound for found in results))


if __name__ == "__main__":
    sys.exit(main())
