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
from isogloss.data.layouts import Layouts, missing, paths
from isogloss.data.question_json import read_questions, write_questions

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


@dataclass(frozen=True, kw_only=True)
class TydiQa:
    """Questions with passages and answers."""

    name: ClassVar[str] = "tydiqa"
    tasks: ClassVar[tuple[str, ...]] = ("qa",)
    url: ClassVar[str] = "https://github.com/google-research-datasets/tydiqa"
    licence: ClassVar[str] = "Apache-2.0"

    def path(self, language: str, split: Split) -> str:
        """Give the place in XTREME's layout."""
        return _XTREME.replace("{split}", split).replace("{language}", language)

    def files(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the one file of a split, named for the code or the English name of the language."""
        name = language_name(language).lower()
        found = folder.find([*paths(BY_CODE, language, split), *paths(BY_NAME, name, split)])
        if not found:
            raise missing(folder, self.name, BY_CODE, language, split)
        return found

    def read(self, folder: Folder, language: str, split: Split) -> Iterator[Question]:
        """Read the questions; an answer that is not at its offset is put right only beyond doubt."""
        file = self.files(folder, language, split)[0]
        return some_at_least(read_questions(file), file.name)

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Give the lines of a JSON file."""
        return write_questions(only(Question, examples, self.name), version="")
