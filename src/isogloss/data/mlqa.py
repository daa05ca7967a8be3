"""MLQA: extractive question answering in seven languages, passages and questions in any two of them.

Lewis et al. (2020), "MLQA: Evaluating Cross-lingual Extractive Question Answering". It has no training split.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from isogloss.data.corpora import AFTER_COLON, Split, only, some_at_least
from isogloss.data.examples import Example, Question
from isogloss.data.files import File, Folder
from isogloss.data.layouts import Layouts, locate
from isogloss.data.question_json import read_questions, write_questions

LANGUAGES = ("ar", "de", "en", "es", "hi", "vi", "zh")
"""MLQA's own, for which its script has rules to compare answers by."""

PLACES = ("mlqa/MLQA_V1/", "MLQA_V1/", "mlqa/")


@dataclass(frozen=True, kw_only=True)
class Mlqa:
    """Questions with passages and answers; the language is that of the passages."""

    name: ClassVar[str] = "mlqa"
    tasks: ClassVar[tuple[str, ...]] = ("qa",)
    url: ClassVar[str] = "https://github.com/facebookresearch/MLQA"
    licence: ClassVar[str] = "CC BY-SA 3.0"

    questions: str = field(default="", metadata=AFTER_COLON)
    """Language of the questions; empty: that of the passages."""

    def path(self, language: str, split: Split) -> str:
        """Give the place in the official layout."""
        return f"mlqa/MLQA_V1/{split}/{split}-context-{language}-question-{self.questions or language}.json"

    def files(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the one file of a split."""
        return locate(folder, self.name, self._layouts(), language, split)

    def read(self, folder: Folder, language: str, split: Split) -> Iterator[Question]:
        """Read the questions; an answer that is not at its offset is put right only beyond doubt."""
        file = self.files(folder, language, split)[0]
        compared_by = language if language in LANGUAGES else ""
        return some_at_least(read_questions(file, language=compared_by), file.name)

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Give the lines of a JSON file."""
        return write_questions(only(Question, examples, self.name), version=1.0)

    def _layouts(self) -> Layouts:
        name = f"context-{{language}}-question-{self.questions or '{language}'}.json"
        return {
            split: tuple(f"{place}{split}/{split}-{name}" for place in PLACES) for split in ("dev", "test")
        }
