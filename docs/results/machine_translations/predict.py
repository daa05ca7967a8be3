"""Label SIB-200 in eleven languages, and its machine translations.

`python predict.py DATA OUT.csv SEED MODEL [SEED MODEL ...]`: DATA holds sib200 and flores-mt; MODEL is the
folder of a fine-tuned topic model, SEED its seed. A row for each model, language and translation: the share
of pairs with one label (consistency), and both accuracies.
"""

import csv
import gzip
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import isogloss

CODES = {
    "ar": "arb_Arab",
    "bg": "bul_Cyrl",
    "de": "deu_Latn",
    "el": "ell_Grek",
    "es": "spa_Latn",
    "fr": "fra_Latn",
    "hi": "hin_Deva",
    "ru": "rus_Cyrl",
    "tr": "tur_Latn",
    "vi": "vie_Latn",
    "zh": "zho_Hans",
}
SPLITS: tuple[Literal["test", "dev"], ...] = ("test", "dev")
COLUMNS = (
    "seed",
    "language",
    "translation",
    "pairs",
    "consistency",
    "accuracy",
    "source_accuracy",
    "examples",
)


def read_lines(path: Path) -> list[str]:
    """Return the lines of a packed file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read().split("\n")


def share(labels: Sequence[object], other_labels: Sequence[object]) -> float:
    """Return the share of equal items."""
    return sum(a == b for a, b in zip(labels, other_labels, strict=True)) / len(labels)


def main(data: Path, table: Path, models: Sequence[tuple[int, str]]) -> None:
    """Append the rows of each model."""
    folder = data / "flores-mt"
    lines = {text: number for number, text in enumerate(read_lines(folder / "ref/flores-test.en.gz"))}
    english = [
        example
        for split in SPLITS
        for example in isogloss.load_corpus("sib200", "eng_Latn", split, data=data)
    ]
    translated_lines = [(index, lines[e.text]) for index, e in enumerate(english) if e.text in lines]
    is_new = not table.exists()
    with table.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        if is_new:
            writer.writerow(COLUMNS)
        for seed, run in models:
            model = isogloss.load_model(run)
            english_labels = model.predict([example.text for example in english], language="en")
            source_accuracy = share(english_labels, [example.label for example in english])
            for language, name in CODES.items():
                examples = [
                    example
                    for split in SPLITS
                    for example in isogloss.load_corpus("sib200", name, split, data=data)
                ]
                labels = model.predict([example.text for example in examples], language=language)
                accuracy = share(labels, [example.label for example in examples])
                other_examples = [*english_labels[1:], english_labels[0]]
                pairs = {"human": (labels, english_labels), "shuffled": (labels, other_examples)}
                originals = (
                    [labels[index] for index, _ in translated_lines],
                    [english_labels[i] for i, _ in translated_lines],
                )
                pairs["human, translated half"] = originals
                for side, (source, target) in enumerate(((language, "en"), ("en", language))):
                    for path in sorted((folder / f"mt/{source}-{target}").glob("*.gz")):
                        texts = read_lines(path)
                        read = model.predict([texts[line] for _, line in translated_lines], language=target)
                        system = path.name.split(".")[1]
                        pairs[f"{system}, {'into English' if target == 'en' else 'from English'}"] = (
                            originals[side],
                            read,
                        )
                for translation, (labels, other_labels) in pairs.items():
                    consistency = round(share(labels, other_labels), 6)
                    accuracies = round(accuracy, 6), round(source_accuracy, 6)
                    writer.writerow(
                        (seed, language, translation, len(labels), consistency, *accuracies, len(examples))
                    )
                file.flush()


if __name__ == "__main__":
    main(
        Path(sys.argv[1]),
        Path(sys.argv[2]),
        [(int(seed), run) for seed, run in zip(sys.argv[3::2], sys.argv[4::2], strict=True)],
    )
