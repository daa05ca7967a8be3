"""Files of WMT's task on the quality of words: SPLIT.src, SPLIT.mt and SPLIT.tags, a sentence a line."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from isogloss.plugins import About, CorpusDefaults, File, Folder, Split, locate
from isogloss_more.quality import LABELS, RatedTranslation

PARTS = ("src", "mt", "tags")


@dataclass(frozen=True, kw_only=True)
class WmtQuality(CorpusDefaults):
    """Rated translations from English."""

    name: str = "wmt-quality"
    tasks: tuple[str, ...] = ("word-quality",)
    about: About = field(default=About("Words of machine translations, OK or BAD."))
    labels: tuple[str, ...] = LABELS

    def path(self, language: str, split: Split) -> str:
        """Return the path of a file written by ``write``."""
        return f"wmt-quality/en-{language}/{split}.tsv"

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the files of one split: three files, or the one written by ``write``."""
        written = folder.find([self.path(language, split)])
        layouts = {name: (f"wmt-quality/en-{{language}}/{name}.src",) for name in ("train", "dev", "test")}
        if written:
            return written
        locate(folder, self.name, layouts, language, split)  # Raises DataError if nothing is there.
        return [file for part in PARTS for file in folder.find([f"wmt-quality/en-{language}/{split}.{part}"])]

    def read(self, source: Any, language: str, split: Split) -> Iterator[RatedTranslation]:
        """Read rated translations. Raises DataError for a line whose ratings do not fit its words."""
        files = self.files(source, language, split)
        if len(files) == 1:
            lines = ((line_number, line.split("\t")) for line_number, line in files[0].lines())
        else:
            lines = (
                (texts[0][0], [text for _, text in texts])
                for texts in zip(*(file.lines() for file in files), strict=True)
            )
        for line_number, texts in lines:
            original, words, ratings = (tuple(text.split()) for text in texts)
            if len(words) != len(ratings) or not set(ratings) <= set(LABELS):
                raise files[-1].broken(
                    line_number, f"{len(ratings)} ratings of {len(words)} words", "OK or BAD for each word"
                )
            yield RatedTranslation(id=str(line_number), source=original, words=words, ratings=ratings)

    def write(self, examples: Iterable[RatedTranslation], language: str) -> Iterator[str]:
        """Yield the lines of one file."""
        del language
        for example in examples:
            yield "\t".join(" ".join(part) for part in (example.source, example.words, example.ratings))


WMT_QUALITY = WmtQuality()
