"""MLQA: extractive question answering in seven languages, passages and questions in any two of them.

Lewis et al. (2020), "MLQA: Evaluating Cross-lingual Extractive Question Answering". It has no training split.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from isogloss.data.corpora import AFTER_COLON, Split, only, some_at_least
from isogloss.data.examples import Example, Question
from isogloss.data.files import File, Folder
from isogloss.data.layouts import Layouts, is_translation, locate, paths
from isogloss.data.question_json import count_lost, read_questions, write_questions

LANGUAGES = ("ar", "de", "en", "es", "hi", "vi", "zh")
"""MLQA's own, for which its script has rules to compare answers by."""

_SPLITS: tuple[Split, ...] = ("dev", "test")
PLACES = ("mlqa/MLQA_V1/", "MLQA_V1/", "mlqa/")
_TRANSLATED = ("mlqa", "MLQA", "xtreme_translations/MLQA")
TRANSLATIONS: Layouts = {
    split: tuple(
        f"{place}/translate-{split}/mlqa.translate.{split}.{{language}}.json" for place in _TRANSLATED
    )
    for split in _SPLITS
}
"""XTREME's, passages and questions of one language."""


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
        return (*paths(self._layouts(language), language, split), f"mlqa/{split}-{language}.json")[0]

    def files(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the one file of a split."""
        return locate(folder, self.name, self._layouts(language), language, split)

    def read(self, folder: Folder, language: str, split: Split) -> Iterator[Question]:
        """Read the questions; an answer that is not at its offset is put right only beyond doubt."""
        file = self.files(folder, language, split)[0]
        written_in = language.rpartition("-")[2]
        questions = read_questions(
            file,
            language=written_in if written_in in LANGUAGES else "",
            answers="translated" if is_translation(language) else "needed",
        )
        return some_at_least(questions, file.name)

    def left_out(self, folder: Folder, language: str, split: Split) -> int:
        """Count the questions of a translation that lost their answers, and so are not read."""
        return count_lost(self.files(folder, language, split)[0]) if is_translation(language) else 0

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Give the lines of a JSON file."""
        return write_questions(only(Question, examples, self.name), version=1.0)

    def _layouts(self, language: str) -> Layouts:
        if is_translation(language) and not self.questions:
            return TRANSLATIONS
        name = f"context-{{language}}-question-{self.questions or '{language}'}.json"
        return {split: tuple(f"{place}{split}/{split}-{name}" for place in PLACES) for split in _SPLITS}
