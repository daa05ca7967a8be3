"""TyDi QA, gold passage task: questions asked by people who wanted to know, in nine languages.

Clark et al. (2020), "TyDi QA: A Benchmark for Information-Seeking Question Answering …". Its test answers are
not public: XTREME and the papers after it measure on dev.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from isogloss.core.languages import language_name
from isogloss.data.corpora import Split, only, some_at_least
from isogloss.data.examples import Example, Question
from isogloss.data.files import File, Folder
from isogloss.data.layouts import Layouts, every_split, is_translation, locate, missing, paths
from isogloss.data.question_json import count_lost, read_questions, write_questions

_XTREME = "tydiqa/tydiqa-goldp-v1.1-{split}/tydiqa.goldp.{language}.{split}.json"
_SPLITS: tuple[Split, ...] = ("train", "dev")
BY_CODE: Layouts = {split: (_XTREME.replace("{split}", split),) for split in _SPLITS}
BY_NAME: Layouts = {
    "train": ("tydiqa-goldp/{language}_tydiqa_train.json",),
    "dev": (
        "tydiqa/tydiqa-goldp-v1.1-dev/tydiqa-goldp-dev-{language}.json",
        "tydiqa-goldp-v1.1-dev/tydiqa-goldp-dev-{language}.json",
        "tydiqa-goldp/{language}_tydiqa_dev.json",
    ),
}
"""Files named for the language's English name, in small letters."""
_PLACES = ("tydiqa", "TyDiQA-GoldP", "xtreme_translations/TyDiQA-GoldP")
TRANSLATIONS: Layouts = {
    "train": (
        *(f"{place}/translate-train/tydiqa.translate.train.{{language}}.json" for place in _PLACES),
        "tydiqa/translate-train-en/tydiqa.translate.train.{language}.json",
    ),
    "dev": tuple(f"{place}/translate-test/tydiqa.translate.test.{{language}}.json" for place in _PLACES),
}
"""XTREME's; what it calls test is dev."""

ALL_LANGUAGES = "tydiqa/tydiqa-goldp-v1.1-train.json"
"""The official training file: the id of a question begins with the English name of its language."""


@dataclass(frozen=True, kw_only=True)
class TydiQa:
    """Questions with passages and answers."""

    name: ClassVar[str] = "tydiqa"
    tasks: ClassVar[tuple[str, ...]] = ("qa",)
    url: ClassVar[str] = "https://github.com/google-research-datasets/tydiqa"
    licence: ClassVar[str] = "Apache-2.0"

    def path(self, language: str, split: Split) -> str:
        """Give the place in XTREME's layout."""
        layouts = TRANSLATIONS if is_translation(language) else BY_CODE
        return paths({**every_split(_XTREME), **layouts}, language, split)[0]

    def files(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the one file of a split, named for the code or the English name of the language."""
        if is_translation(language):
            return locate(folder, self.name, TRANSLATIONS, language, split)
        name = language_name(language).lower()
        whole = [ALL_LANGUAGES] if split == "train" else []
        found = folder.find([*paths(BY_CODE, language, split), *paths(BY_NAME, name, split), *whole])
        if not found:
            raise missing(folder, self.name, BY_CODE, language, split)
        return found

    def read(self, folder: Folder, language: str, split: Split) -> Iterator[Question]:
        """Read the questions; an answer that is not at its offset is put right only beyond doubt."""
        file = self.files(folder, language, split)[0]
        questions = read_questions(file, answers="translated" if is_translation(language) else "needed")
        if file.plain_name.replace("\\", "/").endswith(ALL_LANGUAGES):
            start = f"{language_name(language).lower()}-"
            questions = (question for question in questions if question.id.startswith(start))
        return some_at_least(questions, file.name)

    def left_out(self, folder: Folder, language: str, split: Split) -> int:
        """Count the questions of a translation that lost their answers, and so are not read."""
        return count_lost(self.files(folder, language, split)[0]) if is_translation(language) else 0

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Give the lines of a JSON file."""
        return write_questions(only(Question, examples, self.name), version="")
