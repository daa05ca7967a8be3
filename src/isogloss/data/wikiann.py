"""WikiANN (PAN-X): named entities of Wikipedia sentences, made without hand for 282 languages.

Pan et al. (2017), "Cross-lingual name tagging and linking for 282 languages"; splits of Rahimi et al.
(2019). Layouts: XTREME's ``panx/train-en.tsv`` and the original archives' ``en/train``, whose words read
``en:word``. An I- tag that follows no B- is kept as found: repair belongs to scoring.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from isogloss.data.corpora import Split, only, some_at_least
from isogloss.data.examples import Example, TaggedSentence
from isogloss.data.files import File, Folder
from isogloss.data.layouts import every_split, locate
from isogloss.data.tagged_lines import read_tagged, write_tagged

TAGS = ("O", "B-LOC", "I-LOC", "B-ORG", "I-ORG", "B-PER", "I-PER")

LAYOUTS = every_split(
    "panx/{split}-{language}.tsv",
    "wikiann/{split}-{language}.tsv",
    "wikiann/{language}/{split}",
    "panx/{language}/{split}",
    "panx_dataset/{language}/{split}",
)


@dataclass(frozen=True, kw_only=True)
class WikiAnn:
    """Words with IOB2 tags of persons, organisations and places."""

    name: ClassVar[str] = "wikiann"
    tasks: ClassVar[tuple[str, ...]] = ("ner",)
    url: ClassVar[str] = "https://github.com/afshinrahimi/mmner"
    licence: ClassVar[str] = "none stated; the text is Wikipedia's (CC BY-SA)"

    def path(self, language: str, split: Split) -> str:
        """Give the place in XTREME's layout."""
        return f"panx/{split}-{language}.tsv"

    def files(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the one file of a split."""
        return locate(folder, self.name, LAYOUTS, language, split)

    def read(self, folder: Folder, language: str, split: Split) -> Iterator[TaggedSentence]:
        """Read the sentences; the original layout is known by its file names."""
        file = self.files(folder, language, split)[0]
        prefix = "" if file.plain_name.endswith(".tsv") else f"{language}:"
        return some_at_least(read_tagged(file, TAGS, prefix), file.name)

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Give the lines of a file in XTREME's layout."""
        return write_tagged(only(TaggedSentence, examples, self.name), self.name, TAGS)
