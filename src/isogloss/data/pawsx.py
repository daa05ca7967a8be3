"""PAWS-X: do two sentences made of much the same words mean the same, in seven languages.

Yang et al. (2019), "PAWS-X: A Cross-lingual Adversarial Dataset for Paraphrase Identification". Layouts: the
official ``x-final/de/dev_2k.tsv`` (training: ``train.tsv`` and ``translated_train.tsv``), XTREME's, whose
test files have no labels, and XTREME's translations (``translate-train/en-de-translated.tsv``).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from isogloss.data.corpora import Split, labelled, only, some_at_least
from isogloss.data.examples import Example, SentencePair
from isogloss.data.files import File, Folder
from isogloss.data.layouts import Layouts, every_split, is_translation, locate, paths, translations
from isogloss.data.sentence_pairs import count_left_out, read_pairs, write_pairs

LABELS = {"0": "0", "1": "1"}
"""1: a paraphrase."""

_OFFICIAL: Layouts = {
    "train": ("train.tsv", "translated_train.tsv"),
    "dev": ("dev_2k.tsv",),
    "test": ("test_2k.tsv",),
}
_PLACES = ("pawsx/x-final/{language}/", "x-final/{language}/", "pawsx/{language}/")
_XTREME = every_split("pawsx/{split}-{language}.tsv")
LAYOUTS: Layouts = {
    split: (*(place + file for place in _PLACES for file in files), *_XTREME[split])
    for split, files in _OFFICIAL.items()
}
_OFFICIAL_TRANSLATION = "x-final/{into}/translated_train.tsv"
_TRANSLATIONS = translations(
    ("pawsx/", "PAWSX/", "xtreme_translations/PAWSX/"),
    {
        "train": (
            "translate-train/{language}-translated.tsv",
            _OFFICIAL_TRANSLATION,
            "{into}/translated_train.tsv",
            "translate-train-en/translated_train.{back}-en.tsv",
        ),
        "dev": ("translate-dev/dev-{language}-translated.tsv", "translate-dev/dev_2k.{from}.tsv"),
        "test": ("translate-test/test-{language}-translated.tsv", "translate-test/test.{from}.tsv"),
    },
)
TRANSLATIONS = {**_TRANSLATIONS, "train": (*_TRANSLATIONS["train"], _OFFICIAL_TRANSLATION)}


@dataclass(frozen=True, kw_only=True)
class PawsX:
    """Sentence pairs, labelled 1 (paraphrase) or 0."""

    name: ClassVar[str] = "pawsx"
    tasks: ClassVar[tuple[str, ...]] = ("paraphrase",)
    url: ClassVar[str] = "https://github.com/google-research-datasets/paws/tree/master/pawsx"
    licence: ClassVar[str] = "free for any purpose; Google LLC as the source is to be acknowledged"

    def path(self, language: str, split: Split) -> str:
        """Give the place in XTREME's layout."""
        layouts = TRANSLATIONS if is_translation(language) else _XTREME
        return paths(layouts, language, split)[0]

    def files(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the one file of a split."""
        layouts = TRANSLATIONS if is_translation(language) else LAYOUTS
        return locate(folder, self.name, layouts, language, split)

    def read(self, folder: Folder, language: str, split: Split) -> Iterator[SentencePair]:
        """Read the pairs."""
        file = self.files(folder, language, split)[0]
        pairs = read_pairs(
            file,
            language,
            LABELS,
            translated=is_translation(language),
            unlabelled=split == "test",
        )
        return some_at_least(pairs, file.name)

    def left_out(self, folder: Folder, language: str, split: Split) -> int:
        """Count the rows of a translation that lost their label, and so are not read."""
        file = self.files(folder, language, split)[0]
        return count_left_out(file, language, LABELS, translated=is_translation(language))

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Give the lines of a file in XTREME's layout."""
        return write_pairs(labelled(LABELS, only(SentencePair, examples, self.name), self.name), self.name)
