"""SQuAD and XQuAD: where in a passage does the answer to a question stand.

Train and dev are SQuAD 1.1 (English; Rajpurkar et al., 2016) and its translations; test is XQuAD (Artetxe
et al., 2020), professional translations of 1,190 questions of SQuAD's dev. All passages of XQuAD are in
SQuAD's dev, so dev is no training data for it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from isogloss.data.corpora import Split, only, some_at_least
from isogloss.data.examples import Example, Question
from isogloss.data.files import File, Folder
from isogloss.data.layouts import Layouts, every_split, is_translation, locate, missing, paths
from isogloss.data.question_json import count_lost, read_questions, write_questions

ENGLISH: Layouts = {
    "train": ("squad/train-v1.1.json", "squad/train-v1.1.rebuilt.json"),
    "dev": ("squad/dev-v1.1.json", "squad/dev-v1.1.rebuilt.json"),
}

_OWN = every_split("squad/{split}-{language}.json")
LAYOUTS: Layouts = {
    "train": (*_OWN["train"], "squad/squad.translate.train.en-{language}.json"),
    "dev": _OWN["dev"],
    "test": ("xquad/xquad.{language}.json", *_OWN["test"]),
}
_TRAIN, _XQUAD = "squad.translate.train.{language}.json", "xquad.translate.test.{language}.json"
TRANSLATIONS: Layouts = {
    "train": (
        f"squad/translate-train/{_TRAIN}",
        f"SQuAD/translate-train/{_TRAIN}",
        f"xtreme_translations/SQuAD/translate-train/{_TRAIN}",
        f"squad/translate-train-en/{_TRAIN}",
        f"squad/{_TRAIN}",
    ),
    "dev": tuple(
        f"{place}/translate-dev/squad.translate.dev.{{language}}.json"
        for place in ("squad", "SQuAD", "xtreme_translations/SQuAD")
    ),
    "test": tuple(
        f"{place}/translate-test/{_XQUAD}" for place in ("xquad", "XQuAD", "xtreme_translations/XQuAD")
    ),
}
"""XTREME's: en-sw of SQuAD, sw-en of XQuAD."""


@dataclass(frozen=True, kw_only=True)
class Squad:
    """Questions with passages and answers: SQuAD to train on, XQuAD to test on."""

    name: ClassVar[str] = "squad"
    tasks: ClassVar[tuple[str, ...]] = ("qa",)
    url: ClassVar[str] = "https://rajpurkar.github.io/SQuAD-explorer"
    licence: ClassVar[str] = "CC BY-SA 4.0"

    def path(self, language: str, split: Split) -> str:
        """Give the place of a file of one language."""
        return paths(TRANSLATIONS if is_translation(language) else _OWN, language, split)[0]

    def files(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the one file of a split."""
        if is_translation(language):
            return locate(folder, self.name, TRANSLATIONS, language, split)
        if language == "en":
            found = folder.find([*ENGLISH.get(split, ()), *paths(LAYOUTS, language, split)])
            if not found:
                raise missing(folder, self.name, {**LAYOUTS, **ENGLISH}, language, split)
            return found
        return locate(folder, self.name, LAYOUTS, language, split)

    def read(self, folder: Folder, language: str, split: Split) -> Iterator[Question]:
        """Read the questions; an answer that is not at its offset is put right only beyond doubt."""
        file = self.files(folder, language, split)[0]
        return some_at_least(
            read_questions(file, answers="translated" if is_translation(language) else "needed"), file.name
        )

    def left_out(self, folder: Folder, language: str, split: Split) -> int:
        """Count the questions of a translation that lost their answers, and so are not read."""
        return count_lost(self.files(folder, language, split)[0]) if is_translation(language) else 0

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Give the lines of a JSON file."""
        return write_questions(only(Question, examples, self.name))
