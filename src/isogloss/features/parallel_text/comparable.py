"""Comparable text: sentences of two languages, partly translations of each other.

BUCC's files have an id and a text on each line, its gold files the ids of a sentence and its translation. Our
own form is a table of parallel text, in which a sentence without a translation has an empty cell.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

from isogloss.core.errors import DataError
from isogloss.core.languages import canonical_language, spellings
from isogloss.data.corpus import (
    SPLITS,
    About,
    CorpusDefaults,
    Source,
    Split,
    cannot_write,
    cell,
    nonempty,
    not_there,
    only,
    two_languages,
)
from isogloss.data.examples import ComparableText, Example
from isogloss.data.files import File, Folder
from isogloss.features.parallel_text.forms import read_rows

NAMES: dict[Split, tuple[str, ...]] = {"train": (), "dev": ("sample", "dev"), "test": ("training", "test")}
"""Official names of our splits, then their names after XTREME's script."""


@dataclass(frozen=True, kw_only=True)
class Bucc(CorpusDefaults):
    """BUCC 2018: text of German, French, Russian or Chinese, and of English, with translations to be found.

    Zweigenbaum et al. (2017), "Overview of the Second BUCC Shared Task: Spotting Parallel Sentences in
    Comparable Corpora". Splits are XTREME's (Hu et al. 2020): dev is the official ``sample``, test the
    official ``training`` data, because the official test pairs are not public. It has no training split.
    Layouts: ``bucc2018/de-en/de-en.sample.de`` with ``.en`` and ``.gold``, the same without the inner folder,
    XTREME's names (``de-en.dev.de``; its script deletes ``de-en.test.gold``, which is
    ``de-en.training.gold``), and a table ``bucc2018/de-en.dev.tsv`` (id, de, en) whose rows have both texts,
    or one. Languages are a pair in either order: ``en-de``.
    """

    name: ClassVar[str] = "bucc2018"
    tasks: ClassVar[tuple[str, ...]] = ("comparable",)
    about: ClassVar[About] = About(
        __doc__,
        "https://comparable.limsi.fr/bucc2018/bucc2018-task.html",
        "not stated; the text is from Wikipedia (CC BY-SA) and News Commentary",
    )

    def path(self, language: str, split: Split) -> str:
        """Return the path of a table of the two languages."""
        return f"{self.name}/{language}.{split}.tsv"

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find a table, or both sides and the gold pairs.

        Raises DataError, naming the existing files, if none exists.
        """
        source, target = two_languages(language, self.name)
        pairs = (*spellings(f"{source}-{target}"), *spellings(f"{target}-{source}"))
        table = folder.find([self.path(pair, split) for pair in pairs])
        if table:
            return table
        for pair in pairs:
            for stem in (f"{parent}{pair}.{name}" for name in NAMES[split] for parent in self._places(pair)):
                sides = [folder.find([f"{stem}.{side}"]) for side in pair.split("-")]
                if all(sides):
                    return [sides[0][0], sides[1][0], self._gold(folder, stem)]
        available = {name: self._available_pairs(folder, name) for name in SPLITS}
        searched_paths = [self.path(language, split)]
        searched_paths += [
            f"{self.name}/{language}.{name}.{{{source},{target},gold}}" for name in NAMES[split]
        ]
        search = f"Paths searched: {', '.join(searched_paths)} (also in {self.name}/{language})."
        raise not_there(folder, self.name, language, split, available=available, search=search)

    def files(self, source: Source, language: str, split: Split) -> list[File]:
        """Return the files of one split."""
        two_languages(language, self.name)
        return source.files(self, language, split)

    def read(self, source: Source, language: str, split: Split) -> Iterator[ComparableText]:
        """Yield the pairs that are translations, then the sentences without one.

        A table is read in its own order.
        """
        files = self.files(source, language, split)
        names = two_languages(language, self.name)
        if files[0].plain_name.endswith(".tsv"):
            return nonempty(_read_table(files[0], *names), files[0].name)
        is_reversed = not files[0].plain_name.endswith(tuple(f".{name}" for name in spellings(names[0])))
        return nonempty(_read_official(files, is_reversed=is_reversed), files[0].name)

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:
        """Yield the lines of a table of the two languages."""
        yield "\t".join(("id", *two_languages(language, self.name)))
        ids: set[str] = set()
        for pair in only(ComparableText, examples, self.name):
            texts = [cell(text, self.name, pair.id) for text in (pair.first, pair.second)]
            if not all(text.strip() or not text for text in texts) or not any(texts):
                raise cannot_write(self.name, repr(pair.id), "expected a text, or two, of more than spaces")
            if not pair.id or pair.id in ids:
                raise cannot_write(self.name, repr(pair.id), "expected a unique id")
            ids.add(pair.id)
            yield "\t".join([cell(pair.id, self.name, pair.id), *texts])

    def _places(self, pair: str) -> tuple[str, str]:
        return f"{self.name}/{pair}/", f"{self.name}/"

    def _gold(self, folder: Folder, stem: str) -> File:
        files = folder.find([f"{stem}.gold"])
        if not files:
            raise DataError(
                f"{folder.name}: no {stem}.gold with the pairs of both texts, which exist. Put it into their "
                f"folder. The official test data has no public gold file; XTREME's test is the official "
                f"training data with its gold file."
            )
        return files[0]

    def _available_pairs(self, folder: Folder, split: Split) -> list[str]:
        golds = (f"{parent}*.{name}.gold" for name in NAMES[split] for parent in self._places("*"))
        files = chain.from_iterable(folder.find([pattern]) for pattern in (self.path("*", split), *golds))
        return sorted({canonical_language(file.base_name.partition(".")[0]) for file in files})


def _read_table(file: File, source: str, target: str) -> Iterator[ComparableText]:
    for row in read_rows(file, [source, target], partial=True):
        yield ComparableText(id=row.id, first=row.texts[0], second=row.texts[1])


def _read_official(files: list[File], *, is_reversed: bool) -> Iterator[ComparableText]:
    """Yield the pairs of two sides that are translations, then the other sentences.

    ``is_reversed`` exchanges the sides.
    """
    sides: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for file, side in zip(files[:2], sides, strict=True):
        _read_side(file, side, sides)
    gold = dict.fromkeys(_pairs(files, sides))
    gold_ids = [{pair[side] for pair in gold} for side in (0, 1)]
    rows = [(f"{source} {target}", sides[0][source], sides[1][target]) for source, target in gold]
    rows += [(name, text, "") for name, text in sides[0].items() if name not in gold_ids[0]]
    rows += [(name, "", text) for name, text in sides[1].items() if name not in gold_ids[1]]
    for name, *texts in rows:
        source, target = reversed(texts) if is_reversed else texts
        yield ComparableText(id=name, first=source, second=target)


def _read_side(file: File, side: dict[str, str], sides: tuple[dict[str, str], ...]) -> None:
    for line_number, line in file.lines():
        name, _, text = line.partition("\t")
        if not name or " " in name or not text.strip() or "\t" in text:
            raise file.broken(line_number, f"{line[:80]!r}", "an id without spaces, a tab and a text")
        if any(name in texts for texts in sides):
            raise file.broken(line_number, f"the id {name!r} a second time", "a unique id in both files")
        side[name] = text


def _pairs(files: list[File], sides: tuple[dict[str, str], ...]) -> Iterator[tuple[str, str]]:
    """Yield the ids of sentences and their translations.

    Raises DataError for ids that the files lack. Pairs may be repeated.
    """
    for line_number, line in files[2].lines():
        source, _, target = line.partition("\t")
        for name, side, file in zip((source, target), sides, files, strict=False):
            if name not in side:
                raise files[2].broken(
                    line_number, f"{line[:80]!r}", f"two ids with a tab; {name[:80]!r} is not in {file.name}"
                )
        yield source, target


BUCC = Bucc()
"""The corpus, for the table of corpora."""
