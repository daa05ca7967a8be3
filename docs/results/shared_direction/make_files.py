"""Write a classification of sentences in the built-in languages: `python make_files.py DIR`.

DIR/subjects/LANGUAGE/SPLIT.tsv has sentences and the class of their subject: person, animal, organisation or
tool, equally often. Dev and test sets say the same in all languages; training sets do not.
"""

import csv
import sys
from pathlib import Path

from isogloss.core.identity import derive
from isogloss.features.built_in_languages import LANGUAGES
from isogloss.features.built_in_languages import concepts as c
from isogloss.features.built_in_languages.concepts import Draws
from isogloss.features.built_in_languages.lexicon import lexicon
from isogloss.features.built_in_languages.meaning import Rates, Sampler
from isogloss.features.built_in_languages.rendering import say

CLASSES = {c.PERSON: "person", c.ANIMAL: "animal", c.ORGANISATION: "organisation", c.TOOL: "tool"}
SIZES = {"train": 600, "dev": 200, "test": 400}


def write_split(folder: Path, language: str, split: str) -> None:
    """Write the sentences of a split, one class after the other."""
    draws = Draws(derive(0, "subjects", split, language if split == "train" else ""))
    sampler = Sampler(draws, Rates(pronoun=0.0, link=0.0))
    path = folder / "subjects" / language / f"{split}.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(("id", "class", "text"))
        wanted = list(CLASSES)
        for index in range(SIZES[split]):
            kind = wanted[index % len(wanted)]
            sentence = sampler.sentence()
            while sentence.event.subject is None or c.class_of(sentence.event.subject.concept) != kind:
                sentence = sampler.sentence()
            writer.writerow((index, CLASSES[kind], say(sentence, lexicon(LANGUAGES[language]))))


if __name__ == "__main__":
    for language_code in LANGUAGES:
        for split_name in SIZES:
            write_split(Path(sys.argv[1]), language_code, split_name)
