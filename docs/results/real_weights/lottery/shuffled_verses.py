"""Write verses that do not translate each other, as controls for bitext.

    python docs/results/real_weights/lottery/shuffled_verses.py DIR/bible DIR

`DIR/shuffled_verses` has four languages. Each keeps its verses, in a separate order. `DIR/english_verses` has
English verses and, under the code of Scots (a pair has two languages), other English verses.
`shuffled_verses.toml` and `english_verses.toml` describe the files.
"""

import lzma
import sys
from pathlib import Path

import numpy as np

LANGUAGES = ("en", "de", "ru", "vi")


def shuffle_verses(bible: Path, data: Path, seed: int = 0) -> None:
    """Write each language's verses in a random order, without a verse in its own row."""
    with lzma.open(bible / "bible.9way.tsv.xz", "rt", encoding="utf-8") as file:
        header = file.readline().rstrip("\n").split("\t")
        rows = [dict(zip(header, line.rstrip("\n").split("\t"), strict=True)) for line in file]
    rows = [row for row in rows if all(row[language] for language in LANGUAGES)]
    random = np.random.default_rng(seed)
    order = random.permutation(len(rows))
    shifts = random.choice(np.arange(1, len(rows)), size=len(LANGUAGES) - 1, replace=False)
    for language, shift in zip(LANGUAGES, (0, *shifts), strict=True):
        verses = [rows[index][language] for index in np.roll(order, shift)]
        write_lines(data / "shuffled_verses" / f"{language}.txt", verses)
    for language, shift in (("en", 0), ("sco", shifts[0])):
        verses = [rows[index]["en"] for index in np.roll(order, shift)]
        write_lines(data / "english_verses" / f"{language}.txt", verses)


def write_lines(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    shuffle_verses(Path(sys.argv[1]), Path(sys.argv[2]))
