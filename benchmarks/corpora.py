"""Read every real corpus whole, compare with the counts of its SOURCE.md, write it back; print Markdown.

    python benchmarks/corpora.py --data DIR --files FILES.csv > PAGE.md     # about three minutes
    python benchmarks/corpora.py --data DIR --only panx --only xquad

Speed is examples a second of process time on one core, with decompression.
"""

import argparse
import csv
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

Does isogloss read every file of the real corpora, and write it back without loss? {answer}

![Files of 19 folders: all are written back with equal bytes or data](../../images/files_read.svg)

*Files or pairs by folder, and how they are written back.*

```
cd docs/results/corpora
python ../../../benchmarks/corpora.py --data DIR --files files.csv > README.md
```

`DIR` holds the corpora, each with a `SOURCE.md` that states its counts. *Equal* compares the counts of the
reader with these: sentences / words of treebanks and XTREME's tags, documents / lines of raw text, else
sentences, pairs, questions or verses. Each file or language is then written in the format of `Corpus.write`:

- **bytes**: the written file equals the file on disk (after decompression);
- **bytes but empty lines**: all lines are equal except the number of empty lines;
- **data**: the format differs, and reading it gives equal examples;
- **data, new ids**: like data, but the format has no ids, so rows are numbered.

Speed is examples per second of processor time on one core, with decompression. {made}
[files.csv](files.csv) has every file.
"""

HEADS = (
    "folder",
    "of",
    "language",
    "split",
    "read",
    "stated",
    "equal",
    "written_back",
    "examples_per_second",
)

WHY_NOT_BYTES = """
Formats differ where the original has what the written one cannot express: XNLI's 19 languages in one file;
ids, headers and columns of PAWS-X, MRPC, SNLI and SICK; white space and order of keys in SQuAD's JSON; many
languages in the tables of the Bible and TICO-19; Tatoeba's two files; gold alignments that count from 1."""

MEMORY = """
## Memory

Peak of the memory allocated while the largest file of each folder is read: lines only (decompressing .xz
takes up to 67 MB), and examples that are read one by one and dropped. JSON is parsed whole; tables, treebanks
and pairs keep the ids they have read, to find duplicates; other formats need the same memory for every size.
"""


@dataclass(frozen=True)
class Found:
    """Result of reading a corpus and writing it back."""

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
        """Whether counts are equal if stated, and writing lost nothing."""
        return self.equal != "NO" and self.written != "LOST"


def look(folder: DiskFolder, check: Check) -> Found:
    """Read, count, write back, compare."""
    folder_of_check = Behind(folder, check.path)
    start = time.process_time()
    examples = _read(folder_of_check, check)
    seconds = time.process_time() - start
    return Found(
        check, check.count(examples), written_back(folder_of_check, check, examples), len(examples), seconds
    )


def written_back(folder: Source, check: Check, examples: Sequence[Example]) -> str:
    """Write the examples and return the part that is unchanged on disk: the bytes, or the data."""
    corpus = check.corpus
    language = check.language
    split = check.splits[0]
    text = "".join(line + "\n" for line in corpus.write(examples, language))
    original = "".join("".join(file.read()) for file in corpus.files(folder, language, split))
    if text == original:
        return "bytes"
    if [value for value in text.split("\n") if value] == [value for value in original.split("\n") if value]:
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
        names = [name for pattern in patterns for name in fnmatch.filter(self.texts, pattern)]
        return [_file(name, self.texts[name]) for name in names[:1]]

    def files(self, corpus: Corpus, language: str, split: Split) -> list[File]:
        return corpus.find(self, language, split)

    def inside(self) -> list[str]:
        return sorted(self.texts)


@dataclass(frozen=True)
class Behind:
    """A folder in which only paths with a certain part are visible."""

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
    return [example for split in check.splits for example in check.corpus.read(folder, check.language, split)]


def _without_ids(examples: Sequence[Example]) -> list[Example]:
    documents: dict[int, int] = {}
    return [_without_id(example, documents) for example in examples]


def _without_id(example: Example, documents: dict[int, int]) -> Example:
    if isinstance(example, TextLine):
        return replace(example, id="", document=documents.setdefault(example.document, len(documents)))
    return replace(example, id="") if isinstance(example, SentencePair) else example


def peak(read: Callable[[], Iterable[object]]) -> int:
    """Measure the peak of allocated bytes while examples are read and dropped one by one."""
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
    for directory in dict.fromkeys(result.check.place for result in results):
        owner = [result for result in results if result.check.place == directory]
        equal, unstated_count = (
            sum(result.equal == language for result in owner) for language in ("yes", "–")
        )
        written_back = ", ".join(
            f"{kind} {sum(result.written == kind for result in owner)}"
            for kind in dict.fromkeys(f.written for f in owner)
        )
        corpora = ", ".join(dict.fromkeys(result.check.corpus.name for result in owner))
        cells = (
            directory,
            corpora,
            len(owner),
            f"{equal} of {len(owner) - unstated_count}",
            unstated_count or "",
            written_back,
            _speed(owner),
        )
        yield "| " + " | ".join(str(cell) for cell in cells) + " |"
    yield ""
    if absent:
        names = ", ".join(f"{check.place} {check.of or check.language} {check.split}" for check in absent)
        yield f"Stated in a SOURCE.md but not in the folder: {names}."


def write_files(results: Sequence[Found], path: Path) -> None:
    """Write a row for each file or language."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADS)
        for result in results:
            check = result.check
            where = (check.place, check.of or check.corpus.name, check.language, check.split)
            counts = (result.read, check.stated or "–", result.equal)
            writer.writerow((*where, *counts, result.written, _speed([result]).replace(",", "")))


def _speed(results: Sequence[Found]) -> str:
    """Give examples a second, to two figures."""
    rate = sum(result.examples for result in results) / max(sum(result.seconds for result in results), 1e-6)
    return f"{float(f'{rate:.2g}'):,.0f}"


def memory(folder: DiskFolder, largest: Sequence[Found]) -> Iterator[str]:
    """Give a row for each of the largest."""
    yield "| folder | language | split | examples | million characters | lines, MB | examples, MB |"
    yield "|---|---|---|---|---|---|---|"
    for check in (result.check for result in largest):
        language = check.language
        split = check.splits[0]
        files = check.corpus.files(folder, language, split)
        size = sum(len(line) for file in files for line in file.read())
        lines = max(peak(file.read) for file in files)
        examples = peak(partial(check.corpus.read, folder, language, split))
        count = sum(1 for _ in check.corpus.read(folder, language, split))
        cells = (check.place, language, split, f"{count:,}", f"{size / 1e6:.1f}")
        yield "| " + " | ".join((*cells, f"{lines / 1e6:.1f}", f"{examples / 1e6:.1f}")) + " |"


def _largest(results: Sequence[Found]) -> list[Found]:
    """Return the source with most examples of each folder."""
    most_results: dict[str, Found] = {}
    for result in results:
        most_examples = most_results.setdefault(result.check.place, result)
        if result.examples > most_examples.examples:
            most_results[result.check.place] = result
    return list(most_results.values())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the real corpora")
    parser.add_argument("--only", action="append", default=[], help="a folder below it; may be given often")
    parser.add_argument("--files", type=Path, help="file for a table of every corpus file (CSV)")
    options = parser.parse_args()
    folder = DiskFolder(options.data)
    plan = [check for directory in options.only or places(folder) for check in checks(folder, directory)]
    absent = [check for check in plan if check.named and not check.is_there(folder)]
    results = []
    for check in plan:
        if check.is_there(folder):
            results.append(look(folder, check))
            print(check.place, check.of, check.language, check.split, results[-1].written, file=sys.stderr)
    text = f"Made with Python {platform.python_version()} on {platform.system()} {platform.machine()}."
    lost_total = sum(not result.sound for result in results)
    answer = (
        f"{len(results)} files or pairs were read; {lost_total} differ from the stated counts or lost data."
    )
    heading = HEADING.format(answer=answer, made=text)
    print(heading, *summary(results, absent), WHY_NOT_BYTES, MEMORY, sep="\n")
    print(*memory(folder, _largest(results)), sep="\n")
    if options.files:
        write_files(results, options.files)
    return int(any(not result.sound for result in results))


if __name__ == "__main__":
    sys.exit(main())
