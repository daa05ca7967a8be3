"""Bitext: parallel text of two languages from one collection."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from isogloss.core.errors import DataError
from isogloss.data.corpus import (
    SPLITS,
    About,
    Source,
    Split,
    cannot_write,
    cell,
    nonempty,
    only,
    two_languages,
)
from isogloss.data.examples import Example, Translation
from isogloss.data.files import File, Folder, some
from isogloss.features.parallel_text.forms import (
    LEAST_MARGIN,
    LINKS,
    count_empty,
    find_texts,
    find_treebanks,
    is_mined,
    languages_in,
    read_texts,
    verse_split,
)
from isogloss.features.parallel_text.gold_links import format_links

Whole = Literal["", "train", "dev", "test", "by-verse"]

WHOLES: dict[str, Whole] = {
    "bible": "by-verse",
    "tatoeba": "test",
    "tico19": "test",
    "word-alignment": "test",
}


ALSO: dict[Split, tuple[str, ...]] = {"train": ("train", "all"), "dev": ("dev", "valid"), "test": ("test",)}
"""Names of the splits in file names. XLM and fairseq use valid."""

PUD = "pud"
"""Collection of the Parallel UD treebanks, which are test sets."""


@dataclass(frozen=True, kw_only=True)
class Bitext:
    """Bitext: parallel text of two languages, written ``en-fr``, from one collection.

    A collection is a folder below the data folder with tables, pairs of files or tables of mined text (all
    forms of ``parallel_text``), or the name of parallel treebanks: pud. The pair is found in either order.
    Files named for a split (``en-fr.dev.tsv``, ``dev.en-fr.en``, ``en-fr.en.valid``) are that split. A
    collection without such names is one whole: the Bible is split by verse, known test sets are test,
    anything else is train.
    """

    name: ClassVar[str] = "bitext"
    tasks: ClassVar[tuple[str, ...]] = ("bitext",)
    about: ClassVar[About] = About(__doc__, "https://opus.nlpl.eu", "stated by the files")

    collection: str = "bitext"
    """Folder below the data folder: bible, tatoeba, tico19, word-alignment, or a folder of yours. Or pud, the
    parallel treebanks of Universal Dependencies."""

    whole: Whole = ""
    """Split of a collection without splits in file names. Default: test for known test sets, else train."""

    margin: float = LEAST_MARGIN
    """Mined pairs (WikiMatrix) with a lower margin score are skipped."""

    def path(self, language: str, split: Split) -> str:
        """Return the path of a table of the two languages."""
        return f"{self.collection}/{language}.{split}.tsv"

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find all files of the pair: tables, or both sides and alignments.

        Raises DataError, naming the existing files, if none exists.
        """
        source, target = two_languages(language)
        files_by_split = {name: self._find_split(folder, language, name) for name in SPLITS}
        if files_by_split[split]:
            return files_by_split[split]
        if any(files_by_split.values()):
            raise self._no_split(folder, language, split, [name for name in SPLITS if files_by_split[name]])
        files = self._find(folder, [f"{self.collection}/*"], source, target)
        if not files:
            raise self._missing(folder, language, source, target)
        if self._whole() not in ("by-verse", split):
            raise self._no_split(folder, language, split, [self._whole()])
        return files

    def choose(self, collection: str) -> "Bitext":
        """Return the bitext of a different collection."""
        return replace(self, collection=collection)

    def files(self, source: Source, language: str, split: Split) -> list[File]:
        """Return the files of one split."""
        two_languages(language)
        return source.files(self, language, split)

    def read(self, source: Source, language: str, split: Split) -> Iterator[Translation]:
        """Yield the pairs of one split.

        Ids come from a table or are line numbers, prefixed by the file's name for several files.
        """
        files = self.files(source, language, split)
        pairs = read_texts(files, *two_languages(language), min_margin=self.margin)
        if self._whole() == "by-verse" and not any(_names_a_split(file) for file in files):
            pairs = (pair for pair in pairs if verse_split(pair.id) == split)
        return nonempty(pairs, files[0].name)

    def left_out(self, source: Source, language: str, split: Split) -> int:
        """Count the lines of parallel files that are skipped because one side is empty."""
        return count_empty(self.files(source, language, split))

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:
        """Yield the lines of a table of the two languages and their links."""
        source, target = two_languages(language)
        yield f"id\t{source}\t{target}\t{LINKS}"
        ids: set[str] = set()
        for pair in only(Translation, examples, self.name):
            texts = [cell(text, self.name, pair.id) for text in (pair.id, pair.first, pair.second)]
            if not all(text.strip() for text in texts):
                raise cannot_write(self.name, repr(pair.id), "a text is empty. Remove it")
            if pair.id in ids:
                raise cannot_write(self.name, repr(pair.id), "this id a second time; expected a unique one")
            ids.add(pair.id)
            yield "\t".join([*texts, format_links(pair, self.name)])

    def _whole(self) -> str:
        return self.whole or WHOLES.get(self.collection, "train")

    def _find_split(self, folder: Folder, language: str, split: Split) -> list[File]:
        source, target = two_languages(language)
        files = self._find(folder, self._stems(language, split), source, target)
        return files or find_treebanks(folder, self.collection, split, source, target)

    def _stems(self, language: str, split: Split) -> list[str]:
        source, target = two_languages(language)
        pairs = (f"{source}-{target}", f"{target}-{source}")
        pair_stems = [f"{pair}.{split}" for pair in pairs]
        suffixes = [*pair_stems, *(suffix for name in ALSO[split] for suffix in (name, f"*.{name}"))]
        return [f"{self.collection}/{suffix}" for suffix in suffixes]

    def _find(self, folder: Folder, stems: list[str], source: str, target: str) -> list[File]:
        results = (find_texts(folder, stem, source, target) for stem in stems)
        return next((files for files in results if files), [])

    def _no_split(self, folder: Folder, language: str, split: Split, splits: list[str]) -> DataError:
        return DataError(
            f"{folder.name}: collection {self.collection!r} has no {split} split of bitext {language!r}; "
            f"it has {', '.join(splits)}. Choose that (--split {splits[0]}), or write the split into the "
            f"names of its files ({language}.{split}.tsv)."
        )

    def _missing(self, folder: Folder, language: str, source: str, target: str) -> DataError:
        collections = [
            name for name in (*WHOLES, "bitext") if self._find(folder, [f"{name}/*"], source, target)
        ]
        collections += [PUD] if find_treebanks(folder, PUD, "test", source, target) else []
        tables = [table for table in folder.find([f"{self.collection}/*.tsv"]) if not is_mined(table)]
        languages = sorted(
            {language_in_table for table in tables for language_in_table in languages_in(table)}
        )
        facts = [
            f"{folder.name}: no bitext {language!r} in collection {self.collection!r}.",
            f"Its tables have: {some(languages)}." if languages else "",
            f"Collections that have {language!r}: {some(collections)}; write collection = {collections[0]!r}."
            if collections
            else "",
            f"The folder holds: {some(folder.inside())}. Paths searched: {self.collection}/*.tsv with both "
            f"columns after ids, {self.collection}/NAME.{language}.{source} with NAME.{language}.{target} "
            f"(in either order) and mined {self.collection}/NAME.{language}.tsv. Put them there, or "
            f"choose a different pair.",
        ]
        return DataError(" ".join(fact for fact in facts if fact))


def _names_a_split(file: File) -> bool:
    """Return whether a file's name contains a split: en-fr.dev.tsv, valid.en-fr.en."""
    parts = file.base_name.split(".")
    return any(name in parts for names in (*ALSO.values(), SPLITS) for name in names)


BITEXT = Bitext()
"""The corpus, for the table of corpora."""
