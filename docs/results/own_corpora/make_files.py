"""Write files like a user's, with data of the built-in languages: NER, topics, and choices of two."""

import json
from itertools import islice
from pathlib import Path
from typing import Any

from isogloss.features.built_in_languages import examples

NAMES = {"PER": "PERSON", "LOC": "PLACE", "ORG": "GROUP"}
SIZES = {"train": 600, "dev": 100, "test": 200}


def some(corpus: str, language: str, split: str) -> list[Any]:
    return list(islice(examples(corpus, language, split), SIZES[split]))


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")


def tag_of(tag: str) -> str:
    return tag if tag == "O" else tag[:2] + NAMES[tag[2:]]


def topic_of(tags: tuple[str, ...]) -> str:
    return next((name for kind, name in (("LOC", "places"), ("PER", "people")) if kind in str(tags)), "other")


for language in ("qaa", "qab", "qad"):
    for split in SIZES:
        tagged_words = some("wikiann", language, split)
        sentences = [
            "".join(
                f"{word} {tag_of(tag)}\n" for word, tag in zip(sentence.words, sentence.tags, strict=True)
            )
            for sentence in tagged_words
        ]
        write(f"names/{language}/{split}.txt", "\n".join(sentences))
        topics = "".join(
            f"{topic_of(sentence.tags)}\t{' '.join(sentence.words)}\n" for sentence in tagged_words
        )
        write(f"topics/{split}-{language}.tsv", f"label\ttext\n{topics}")
        pairs = some("xnli", language, split)
        follow, other_pairs = (
            [p for p in pairs if (p.label == "entailment") == choice] for choice in (True, False)
        )
        lines = ""
        for index, (pair, other_pair) in enumerate(zip(follow, other_pairs, strict=False)):
            label = index % 2
            options = [pair.second, other_pair.second][:: -1 if label else 1]
            lines += json.dumps({"premise": pair.first, "options": options, "label": label}) + "\n"
        write(f"picks/{language}-{split}.jsonl", lines)
