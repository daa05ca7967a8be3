"""XNLI: does a premise entail a hypothesis, contradict it, or neither, in fifteen languages.

Conneau et al. (2018), "XNLI: Evaluating Cross-lingual Sentence Representations". Layouts: the official
``xnli.dev.tsv`` with all languages in one file, the official (translated) training files
``multinli.train.sw.tsv``, MultiNLI's own training file, XTREME's ``dev-sw.tsv``, and XTREME's translations
(``translate-train/en-sw-translated.tsv``, ``translate-test/test-sw-en-translated.tsv``). XTREME takes the
labels out of its test files: such a file can be predicted, not scored.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from isogloss.core.errors import DataError, did_you_mean
from isogloss.data.corpora import Split, labelled, only, some_at_least
from isogloss.data.examples import Example, SentencePair
from isogloss.data.files import File, Folder
from isogloss.data.layouts import every_split, is_translation, locate, missing, paths, some, translations
from isogloss.data.sentence_pairs import count_left_out, languages_in, read_pairs, write_pairs

LABELS = {
    "entailment": "entailment",
    "neutral": "neutral",
    "contradiction": "contradiction",
    "contradictory": "contradiction",  # so spelled in the official translated training files
}

ALL_LANGUAGES = every_split(
    "xnli/xnli.{split}.tsv", "XNLI-1.0/xnli.{split}.tsv", "xnli/XNLI-1.0/xnli.{split}.tsv"
)

_XTREME = every_split("xnli/{split}-{language}.tsv", "xnli/xtreme-format/{split}-{language}.tsv")
ONE_LANGUAGE = {
    **_XTREME,
    "train": (
        "xnli/multinli.train.{language}.tsv",
        "XNLI-MT-1.0/multinli/multinli.train.{language}.tsv",
        "xnli/XNLI-MT-1.0/multinli/multinli.train.{language}.tsv",
        *_XTREME["train"],
    ),
}
_OFFICIAL_TRANSLATION = "XNLI-MT-1.0/multinli/multinli.train.{into}.tsv"
_TRANSLATIONS = translations(
    ("xnli/", "XNLI/", "xtreme_translations/XNLI/"),
    {
        "train": (
            "translate-train/{language}-translated.tsv",
            _OFFICIAL_TRANSLATION,
            "multinli.train.{into}.tsv",
            "translate-train-en/multinli.train.{back}-en.tsv",
        ),
        "dev": ("translate-dev/dev-{language}-translated.tsv",),
        "test": ("translate-test/test-{language}-translated.tsv", "translate-test/test.{from}.tsv"),
    },
)
TRANSLATIONS = {**_TRANSLATIONS, "train": (*_TRANSLATIONS["train"], _OFFICIAL_TRANSLATION)}
ENGLISH_TRAIN = ("multinli_1.0/multinli_1.0_train.txt", "xnli/multinli_1.0/multinli_1.0_train.txt")


@dataclass(frozen=True, kw_only=True)
class Xnli:
    """Premises and hypotheses, labelled entailment, neutral or contradiction."""

    name: ClassVar[str] = "xnli"
    tasks: ClassVar[tuple[str, ...]] = ("nli",)
    url: ClassVar[str] = "https://github.com/facebookresearch/XNLI"
    licence: ClassVar[str] = "CC BY-NC 4.0"

    def path(self, language: str, split: Split) -> str:
        """Give the place in XTREME's layout."""
        layouts = TRANSLATIONS if is_translation(language) else _XTREME
        return paths(layouts, language, split)[0]

    def files(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the official file if it has the language, else the language's own file, or a translation."""
        if is_translation(language):
            return locate(folder, self.name, TRANSLATIONS, language, split)
        official = folder.find(ALL_LANGUAGES[split])
        if official and language in languages_in(official[0]):  # looks no further than the language
            return official
        own = folder.find(
            [*paths(ONE_LANGUAGE, language, split), *(ENGLISH_TRAIN if _mnli(language, split) else ())]
        )
        if own:
            return own
        if official:
            there = sorted(languages_in(official[0]))
            raise DataError(
                f"{official[0].name}: no rows of language {language!r}.{did_you_mean(language, there)} "
                f"It has: {some(there)}. Choose one of these, or add a file {self.path(language, split)}."
            )
        raise missing(folder, self.name, ONE_LANGUAGE, language, split)

    def read(self, folder: Folder, language: str, split: Split) -> Iterator[SentencePair]:
        """Read the pairs of one language."""
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
        return write_pairs(
            labelled(LABELS.values(), only(SentencePair, examples, self.name), self.name), self.name
        )


def _mnli(language: str, split: Split) -> bool:
    return language == "en" and split == "train"
