"""The files of the program eflomal: sentences as numbers, links, and priors, that is counts of links kept.

Priors are a table as eflomal's own tools write it: LEX first second count; FERF, FERR word fertility count;
HMMF, HMMR jump count, for the forward and the backward direction.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from isogloss.data.files import File
from isogloss.data.word_links import Link

TOO_LONG = 1024
"""Words of a sentence that the program leaves out, as its own front end does."""

Vocabulary = dict[str, int]
Words = Sequence[str]
Priors = Counter[tuple[str, ...]]
"""Counts by kind and what is counted: ("LEX", "house", "maison"), ("HMMF", "1"), ("FERR", "maison", "2")."""

_KINDS = ("LEX", "HMMF", "HMMR", "FERF", "FERR")


def write_sentences(path: Path, sentences: Sequence[Words]) -> Vocabulary:
    """Write sentences as numbers, and return the number of each word; too long ones become empty."""
    known: Vocabulary = {}
    rows = [
        [known.setdefault(word, len(known)) for word in words] if len(words) < TOO_LONG else []
        for words in sentences
    ]
    with path.open("w", encoding="ascii", newline="\n") as file:
        file.write(f"{len(rows)} {len(known)}\n")
        file.writelines(" ".join(map(str, (len(row), *row))) + "\n" for row in rows)
    return known


def count_priors(
    pairs: Iterable[tuple[Words, Words]],
    forward: Iterable[Iterable[Link]],
    backward: Iterable[Iterable[Link]],
) -> Priors:
    """Count what the links of both directions say about words, their fertilities and jumps."""
    counts: Priors = Counter()
    for (first, second), one, other in zip(pairs, forward, backward, strict=True):
        given = [i for i, _ in sorted(one, key=lambda link: link[1])]
        made = [j for _, j in sorted(other)]
        counts.update(("LEX", first[i], second[j]) for i, j in one)
        counts.update(("HMMF", str(jump)) for jump in _jumps(given, len(first)))
        counts.update(("HMMR", str(jump)) for jump in _jumps(made, len(second)))
        for kind, words, places in (("FERF", first, given), ("FERR", second, made)):
            counts.update((kind, words[place], str(times)) for place, times in Counter(places).items())
    return counts


def priors_lines(priors: Priors) -> Iterator[str]:
    """Give the lines of a table of priors."""
    for entry, count in sorted(priors.items()):
        yield "\t".join((*entry, str(count)))


def read_priors(file: File) -> Priors:
    """Read a table of priors; DataError at a line that is none."""
    priors: Priors = Counter()
    for number, line in file.lines():
        *entry, count = line.split("\t")
        width = 2 if entry[:1] in (["HMMF"], ["HMMR"]) else 3
        if len(entry) != width or entry[0] not in _KINDS or not count.isdecimal():
            raise file.broken(number, f"{line[:80]!r}", "kind, word or words or jump, and count")
        priors[tuple(entry)] += int(count)
    return priors


def write_priors(path: Path, priors: Priors, first: Vocabulary, second: Vocabulary) -> None:
    """Write the priors that concern words of these vocabularies as the program reads them."""
    one, other = _number(first), _number(second)
    columns: dict[str, Callable[[tuple[str, ...]], list[int | None]]] = {
        "LEX": lambda entry: [one(entry[1]), other(entry[2])],
        "HMMF": lambda entry: [int(entry[1])],
        "HMMR": lambda entry: [int(entry[1])],
        "FERF": lambda entry: [one(entry[1]), int(entry[2])],
        "FERR": lambda entry: [other(entry[1]), int(entry[2])],
    }
    rows: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    for entry, count in sorted(priors.items()):
        numbers = columns[entry[0]](entry)
        if None not in numbers:
            rows[entry[0]].append(" ".join(map(str, (*numbers, count))))
    sizes = (len(first) + 1, len(second) + 1, *(len(rows[kind]) for kind in _KINDS))
    with path.open("w", encoding="ascii", newline="\n") as file:
        file.write(" ".join(map(str, sizes)) + "\n")
        file.writelines(f"{row}\n" for kind in _KINDS for row in rows[kind])


def _number(known: Vocabulary) -> Callable[[str], int | None]:
    """Return what numbers words as priors do, where 0 is no word."""
    return lambda word: known[word] + 1 if word in known else None


def _jumps(places: Sequence[int], length: int) -> Iterator[int]:
    """Give the distances between places that follow one another, from before the first to after the last."""
    for before, after in zip((-1, *places), (*places, length), strict=True):
        yield after - before
