"""Write NLI pairs whose translations have errors at five rates, one a pair: `python make_files.py OUT`.

OUT/pairs/LANGUAGE/SPLIT.csv, where LANGUAGE is qaa, qad, or one in its translation into the other (qaa-qad,
qad-qaa). A pair's rate follows from its number.
"""

import csv
import sys
from itertools import islice
from pathlib import Path

from noise_ratio import rate_of

from isogloss.features.built_in_languages import BuiltInTranslator, examples

SIZES = {"train": 6000, "dev": 300, "test": 600}


def main(folder: Path) -> None:
    """Write all files."""
    for split, size in SIZES.items():
        for language, other_language in (("qaa", "qad"), ("qad", "qaa")):
            pairs = list(islice(examples("xnli", language, split), size))
            plain_result = [(pair.first, pair.second) for pair in pairs]
            noisy = []
            for index, texts in enumerate(plain_result):
                translator = BuiltInTranslator(language, other_language, noise=rate_of(index))
                noisy.append(tuple(translator.translate(text) for text in texts))
            for name, texts in ((language, plain_result), (f"{language}-{other_language}", noisy)):
                path = folder / "pairs" / name / f"{split}.csv"
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("w", encoding="utf-8", newline="") as file:
                    rows = csv.writer(file, lineterminator="\n")
                    rows.writerow(("id", "first", "second", "label"))
                    rows.writerows((n, *texts[n], pair.label) for n, pair in enumerate(pairs))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
