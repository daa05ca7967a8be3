"""Treebanks of Universal Dependencies, and the choice of a language's treebank."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from isogloss.core.errors import ConfigError, DataError, did_you_mean
from isogloss.core.languages import canonical_language, is_built_in, language_name, spellings
from isogloss.data.corpus import SPLITS, TREEBANKS, About, CorpusDefaults, Source, Split, nonempty, only
from isogloss.data.examples import Example, ParsedSentence
from isogloss.data.files import File, Folder, some
from isogloss.data.formats.conllu import read_conllu, write_conllu

DEFAULTS = {
    "ar": "PADT", "de": "GSD", "en": "EWT", "es": "GSD", "fr": "GSD",
    "hi": "HDTB", "ru": "GSD", "vi": "VTB", "zh": "GSD",
}  # fmt: skip
"""The nine treebanks of the interpolation paper (its Table 1)."""

BUILT_IN = "BuiltIn"
"""Treebank name of the built-in languages."""

_TREEBANK = re.compile(r"[\w.][\w./-]*")
_FILE = re.compile(r"([a-z]+)_([a-z0-9]+)-ud-(?:train|dev|test)\.conllu")


@dataclass(frozen=True, kw_only=True)
class Ud(CorpusDefaults):
    """Universal Dependencies: treebanks with universal tags and trees.

    Nivre et al. (2020), "Universal Dependencies v2 …". A language has several treebanks, and they differ in
    text and guidelines. It is read from one of them, as named in ``treebanks``, else in ``DEFAULTS``, else
    from the only one the folder has. Treebanks are never mixed, not even to fill in a missing split.
    """

    name: ClassVar[str] = "ud"
    tasks: ClassVar[tuple[str, ...]] = ("upos", "parsing")
    about: ClassVar[About] = About(
        __doc__, "https://universaldependencies.org", "that of each treebank (mostly CC BY-SA or CC BY-NC-SA)"
    )

    treebanks: tuple[tuple[str, str], ...] = ()
    """Language and treebank, as in ``(("fr", "Sequoia"),)``; a name with a slash is a folder below the data
    folder, as in ``(("vi", "ud-legacy/v2.5_UD_Vietnamese-VTB"),)``."""

    def __post_init__(self) -> None:
        for language, treebank in self.treebanks:
            if not _TREEBANK.fullmatch(treebank) or ".." in treebank:
                raise ConfigError(
                    f"corpus ud, treebanks: {treebank!r} for {language!r} is no treebank name. Use the part "
                    f"after the hyphen (Sequoia of UD_French-Sequoia) or a folder below the data folder."
                )

    def path(self, language: str, split: Split) -> str:
        """Return the path in the treebank that is read for the language."""
        treebank = self.named(language) or BUILT_IN
        if "/" in treebank:
            return f"{treebank}/{language}-ud-{split}.conllu"
        name = language_name(language).replace(" ", "_")
        return f"ud/UD_{name}-{treebank}/{language}_{treebank.lower()}-ud-{split}.conllu"

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the one file of a split in the language's treebank."""
        treebank = self.named(language)
        if treebank == BUILT_IN and treebanks_there(folder, language, split):  # UD uses one of our codes.
            treebank = dict(self.treebanks).get(language, "")
        treebank = treebank or _only_one(folder, language)
        if files := folder.find(ud_paths(treebank, language, split)):
            return files
        raise _missing(folder, language, split, treebank)

    def read(self, source: Source, language: str, split: Split) -> Iterator[ParsedSentence]:
        """Read the sentences with their lines."""
        file = self.files(source, language, split)[0]
        return nonempty(read_conllu(file), file.name)

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Yield the lines of a CoNLL-U file."""
        return write_conllu(only(ParsedSentence, examples, self.name), self.name)

    def named(self, language: str) -> str:
        """Return the treebank that is read for a language; empty for the only one that exists."""
        if is_built_in(language.partition("-")[0]):  # A pair such as qaa-qab is there in translation.
            return BUILT_IN
        return dict(self.treebanks).get(language) or DEFAULTS.get(language, "")


def treebanks_there(folder: Folder, language: str, split: Split) -> list[str]:
    """Return the names, in lower case as in file names, of the language's treebanks that have the split."""
    names, codes = set[str](), spellings(language)
    for parent in TREEBANKS:
        for file in folder.find([f"{parent}UD_*/*_*-ud-{split}.conllu"]):
            if (match := _FILE.fullmatch(file.base_name)) and match[1] in codes:
                names.add(match[2])
    return sorted(names)


def ud_paths(treebank: str, language: str, split: Split) -> list[str]:
    """Return the path patterns of a treebank, by name or folder: ``UD_*/sme_giella-ud-test.conllu``."""
    codes = [code for code in spellings(language) if code == language or code.isalpha()]  # without scripts
    by_name = [f"{parent}UD_*" for parent in TREEBANKS], f"_{treebank.lower()}"
    folders, name = ([treebank], "*") if "/" in treebank else by_name
    return [f"{folder}/{code}{name}-ud-{split}.conllu" for folder in folders for code in codes]


def _only_one(folder: Folder, language: str) -> str:
    names = sorted({name for split in SPLITS for name in treebanks_there(folder, language, split)})
    if len(names) > 1:
        raise DataError(
            f"{folder.name}: corpus ud has several treebanks for language {language!r}: {some(names)}; "
            f'expected one, or one that is named. Name it: treebanks = {{ {language} = "{names[0]}" }}.'
        )
    return names[0] if names else ""


def _missing(folder: Folder, language: str, split: Split, treebank: str) -> DataError:
    others = treebanks_there(folder, language, split)
    splits = [other for other in SPLITS if treebank and folder.find(ud_paths(treebank, language, other))]
    of_it = f"treebank {treebank!r} of language {language!r}" if treebank else f"language {language!r}"
    facts = [
        f"{folder.name}: no {split} split of corpus 'ud' for {of_it}."
        f"{did_you_mean(treebank.lower(), others)}",
        f"That treebank has: {', '.join(splits)}." if splits else "",
        f"Treebanks of {language!r} with {split}: {some(others)}. Name one, as in treebanks = "
        f'{{ {language} = "{others[0]}" }}; then all splits come from it.'
        if others
        else f"No treebank of {language!r} there has {split}. {_languages(folder, split)} Fetch it from "
        f"{Ud.about.url}, or choose another language or split.",
    ]
    return DataError(" ".join(fact for fact in facts if fact))


def _languages(folder: Folder, split: Split) -> str:
    files = [file for parent in TREEBANKS for file in folder.find([f"{parent}UD_*/*-ud-{split}.conllu"])]
    codes = {canonical_language(file.base_name.partition("_")[0]) for file in files}
    if codes:
        plain = {code for code in codes if "-" not in code} or codes
        return f"Languages with {split}: {some(sorted(plain))}."
    return f"The folder holds: {some(folder.inside())}."
