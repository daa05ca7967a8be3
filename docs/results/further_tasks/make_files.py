"""Write files for five tasks with data of the built-in languages: `python make_files.py`, in this folder."""

import json
from itertools import islice
from pathlib import Path
from typing import Any

from isogloss.features.built_in_languages import examples

SIZES = {"train": 600, "dev": 100, "test": 200}


def some(corpus: str, language: str, split: str) -> list[Any]:
    """Return the first examples of a corpus."""
    return list(islice(examples(corpus, language, split), SIZES[split]))


def write(path: str, text: str) -> None:
    """Write a file, with its folder."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")


def share_of_words(first: str, second: str) -> float:
    """Return the share of words that two sentences have in common."""
    words = set(first.split()), set(second.split())
    return len(words[0] & words[1]) / len(words[0] | words[1])


for language in ("qaa", "qab", "qad"):
    for split in SIZES:
        trees = some("ud", language, split)
        write(f"words/{language}/{split}.conllu", "".join("\n".join(tree.lines) + "\n\n" for tree in trees))
        mentions = [
            {
                "text": " ".join(sentence.words),
                "labels": sorted({tag[2:] for tag in sentence.tags if tag != "O"}),
            }
            for sentence in some("wikiann", language, split)
        ]
        write(f"mentions/{language}/{split}.jsonl", "".join(json.dumps(row) + "\n" for row in mentions))
        pairs = some("xnli", language, split)
        follows = "".join(
            f"{'yes' if pair.label == 'entailment' else 'no'}\t{pair.first}\t{pair.second}\n"
            for pair in pairs
        )
        write(f"follows/{language}/{split}.tsv", f"label\tfirst\tsecond\n{follows}")
        overlap = "".join(
            f"{share_of_words(pair.first, pair.second):.3f}\t{pair.first}\t{pair.second}\n" for pair in pairs
        )
        write(f"overlap/{language}/{split}.tsv", f"label\tfirst\tsecond\n{overlap}")
