"""Write tagged sentences of UD and MasakhaPOS into one folder, in the layout of MasakhaPOS.

A treebank without a train split has its dev split as train split, and its first 100 sentences as dev split.
"""

import sys
from pathlib import Path

import isogloss

TREEBANKS = ("en", "de", "es", "ru", "vi")
NEWS = ("swa", "yor")


def write(path: Path, sentences: list) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(
        "".join(f"{word} {tag}\n" for word, tag in zip(sentence.words, sentence.tags, strict=True))
        for sentence in sentences
    )
    path.write_text(text, encoding="utf-8")


data, folder = sys.argv[1:]
for corpus, languages in (("ud", TREEBANKS), ("masakhapos", NEWS)):
    for language in languages:
        splits = {}
        for split in ("train", "dev", "test"):
            try:
                splits[split] = isogloss.load_corpus(corpus, language, split, data=data)
            except isogloss.DataError:
                splits[split] = []
        train = splits["train"] or splits["dev"]
        for split, sentences in (("train", train), ("dev", splits["dev"][:100]), ("test", splits["test"])):
            write(Path(folder) / "masakhapos" / language / f"{split}.txt", sentences)
