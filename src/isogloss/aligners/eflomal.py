"""eflomal (Östling & Tiedemann 2016): a Bayesian hidden Markov model with fertility, by Gibbs sampling.

It is under the GNU GPL, so it is only ever run as a program, which the user installs; nothing of it is
imported. The program draws its random numbers from the system: two runs differ in a few links, whatever the
seed. It reads sentences as numbers, and priors, which are counts of earlier links, as its own tools write
them: LEX first second count; FERF, FERR word fertility count; HMMF, HMMR jump count (forward, backward).
"""

import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, Literal

from isogloss.aligners.setting import AlignSetting
from isogloss.core.errors import ConfigError, DataError, RunError
from isogloss.core.presence import make_folder
from isogloss.core.progress import Progress
from isogloss.core.records import writing
from isogloss.data.examples import Translation
from isogloss.data.files import File, disk_file
from isogloss.data.word_links import (
    Aligned,
    Link,
    Symmetrization,
    pair_words,
    read_pharaoh,
    symmetrized,
)

PROGRAM = "eflomal"
PRIORS = "eflomal.priors"

ROUNDS = 5000
"""Sampling iterations for one pair; for n pairs divided by √n, as in the program's own front end."""

TOO_LONG = 1024
"""Sentences of this many words are left out, as by the program's own front end."""

Vocabulary = dict[str, int]
Words = Sequence[str]
Priors = Counter[tuple[str, ...]]
"""Counts by kind and event: ("LEX", "house", "maison"), ("HMMF", "1"), ("FERR", "maison", "2")."""

_KINDS = ("LEX", "HMMF", "HMMR", "FERF", "FERR")


@dataclass(frozen=True, kw_only=True)
class Eflomal:
    """Align with the program eflomal: more accurate than fast-align, and slower."""

    name: ClassVar[str] = "eflomal"
    needs_encoder: ClassVar[bool] = False
    version: ClassVar[int] = 2

    symmetrization: Symmetrization = "intersection"
    """How both directions become one: intersection (one-to-one), union, grow-diag, grow-diag-final-and, or
    forward or backward alone."""

    model: Literal[1, 2, 3] = 3
    """1: words alone (IBM 1), 2: order too (HMM), 3: fertility too."""

    samplers: int = 3
    """Samplers whose links are averaged."""

    length: float = 1.0
    """Sampling iterations, relative to the program's usual number."""

    none: float = 0.2
    """Prior probability that a word has no counterpart."""

    lowercase: bool = True
    """Whether words are lowercased."""

    def align(self, setting: AlignSetting) -> list[Aligned]:
        """Align the pairs, and store counts of their links as priors for new ones."""
        forward, backward = self.directions(setting)
        priors = count_priors(
            self._words(setting.pairs),
            *([one.links for one in direction] for direction in (forward, backward)),
        )
        with writing(setting.folder / PRIORS):
            make_folder(setting.folder)
            text = "".join(f"{line}\n" for line in priors_lines(priors))
            (setting.folder / PRIORS).write_text(text, encoding="utf-8", newline="\n")
        return self._symmetrized(forward, backward)

    def align_new(self, setting: AlignSetting) -> list[Aligned]:
        """Align new pairs with the priors in the setting's folder."""
        if not (setting.folder / PRIORS).is_file():
            raise DataError(
                f"{setting.folder}: no alignment model is here ({PRIORS}). Give the folder of a bitext that "
                f"eflomal aligned, or align it again."
            )
        return self._symmetrized(*self.directions(setting, read_priors(disk_file(setting.folder / PRIORS))))

    def _symmetrized(self, forward: Sequence[Aligned], backward: Sequence[Aligned]) -> list[Aligned]:
        return [
            Aligned(links=symmetrized(one.links, other.links, self.symmetrization))
            for one, other in zip(forward, backward, strict=True)
        ]

    def _words(self, pairs: Sequence[Translation]) -> list[tuple[list[str], list[str]]]:
        shaped = str.lower if self.lowercase else str
        return [
            (list(map(shaped, first)), list(map(shaped, second))) for first, second in map(pair_words, pairs)
        ]

    def directions(
        self, setting: AlignSetting, priors: Priors | None = None
    ) -> tuple[list[Aligned], list[Aligned]]:
        """Run the program and return the links of both directions."""
        program = _program()
        words = self._words(setting.pairs)
        setting.on_progress(Progress(what="eflomal", done=0, total=1, remark=f"{len(words)} pairs"))
        with TemporaryDirectory(prefix="eflomal-") as folder:
            first, second, forward, backward = (
                Path(folder, name) for name in ("first", "second", "fwd", "rev")
            )
            vocabularies = [
                write_sentences(path, side)
                for path, side in ((first, [a for a, _ in words]), (second, [b for _, b in words]))
            ]
            options = ["-s", str(first), "-t", str(second), "-f", str(forward), "-r", str(backward)]
            if priors is not None:
                write_priors(Path(folder, "priors"), priors, *vocabularies)
                options += ["-p", str(Path(folder, "priors"))]
            _run([program, *options, *self._options(len(words))])
            links = [list(read_pharaoh(disk_file(path), setting.pairs)) for path in (forward, backward)]
        setting.on_progress(Progress(what="eflomal", done=1, total=1))
        return links[0], links[1]

    def _options(self, pairs: int) -> list[str]:
        """Return the options of model and iterations; the simpler models run first, a quarter as long."""
        rounds = max(2, round(self.length * ROUNDS / sqrt(max(pairs, 1))))
        quarter = max(1, rounds // 4)
        by_model = {1: (rounds, 0, 0), 2: (max(2, quarter), rounds, 0), 3: (max(2, quarter), quarter, rounds)}
        stages = zip("123", by_model[self.model], strict=True)
        fixed = ["-m", str(self.model), "-n", str(self.samplers), "-N", str(self.none), "-q"]
        return [*fixed, *(text for stage, number in stages if number for text in (f"-{stage}", str(number)))]


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    except OSError as error:
        raise RunError(
            f"{command[0]}: cannot be run ({error.strerror or error}). Install eflomal again."
        ) from error
    if done.returncode:
        said = " ".join(done.stderr.split())[-300:] or "it said nothing"
        raise RunError(
            f"{command[0]}: ended with code {done.returncode} ({said}). Align fewer pairs, or use fast-align."
        )


def _program() -> str:
    """Return the path of the program: on the PATH, or in its Python package."""
    spec = find_spec(PROGRAM)
    paths = [Path(folder, "bin", PROGRAM) for folder in (spec and spec.submodule_search_locations) or ()]
    found = shutil.which(PROGRAM) or next((str(path) for path in paths if path.is_file()), None)
    if found is None:
        raise ConfigError(
            "aligner eflomal: no program eflomal is on the PATH. pip install eflomal (it is under the GPL, "
            "and needs a C compiler), or choose the aligner fast-align or encoder."
        )
    return found


def write_sentences(path: Path, sentences: Sequence[Words]) -> Vocabulary:
    """Write sentences as numbers and return the vocabulary; sentences that are too long become empty."""
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
    """Return the counts of word pairs, fertilities and jumps in the links of both directions."""
    counts: Priors = Counter()
    for (first, second), one, other in zip(pairs, forward, backward, strict=True):
        given = [i for i, _ in sorted(one, key=lambda link: link[1])]
        made = [j for _, j in sorted(other)]
        counts.update(("LEX", first[i], second[j]) for i, j in one)
        counts.update(("HMMF", str(jump)) for jump in _jumps(given, len(first)))
        counts.update(("HMMR", str(jump)) for jump in _jumps(made, len(second)))
        for kind, words, indices in (("FERF", first, given), ("FERR", second, made)):
            counts.update((kind, words[index], str(times)) for index, times in Counter(indices).items())
    return counts


def priors_lines(priors: Priors) -> Iterator[str]:
    """Yield the lines of a table of priors."""
    for entry, count in sorted(priors.items()):
        yield "\t".join((*entry, str(count)))


def read_priors(file: File) -> Priors:
    """Read a table of priors; DataError at a malformed line."""
    priors: Priors = Counter()
    for number, line in file.lines():
        *entry, count = line.split("\t")
        width = 2 if entry[:1] in (["HMMF"], ["HMMR"]) else 3
        if len(entry) != width or entry[0] not in _KINDS or not count.isdecimal():
            raise file.broken(number, f"{line[:80]!r}", "kind, word or words or jump, and count")
        priors[tuple(entry)] += int(count)
    return priors


def write_priors(path: Path, priors: Priors, first: Vocabulary, second: Vocabulary) -> None:
    """Write the priors about words of these vocabularies as the program reads them."""
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
    """Return a function from words to their numbers in priors, where 0 is the NULL word."""
    return lambda word: known[word] + 1 if word in known else None


def _jumps(positions: Sequence[int], length: int) -> Iterator[int]:
    """Yield the distances of successive positions, from before the first to after the last word."""
    for before, after in zip((-1, *positions), (*positions, length), strict=True):
        yield after - before
