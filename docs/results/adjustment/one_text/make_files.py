"""Write the texts of NLI pairs one by one: `python make_files.py OUT` (OUT/hypothesis, OUT/premise)."""

import csv
import sys
from itertools import islice
from pathlib import Path

from isogloss.features.built_in_languages import examples

SIZES = {"train": 12000, "dev": 300, "test": 600}


def main(folder: Path) -> None:
    """Write SPLIT-LANGUAGE.tsv for both texts."""
    for language in ("qaa", "qad"):
        for split, size in SIZES.items():
            pairs = list(islice(examples("xnli", language, split), size))
            for name, side in (("premise", "first"), ("hypothesis", "second")):
                path = folder / name / f"{split}-{language}.tsv"
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("w", encoding="utf-8", newline="") as file:
                    rows = csv.writer(file, delimiter="\t", lineterminator="\n")
                    rows.writerow(("label", "text"))
                    rows.writerows((pair.label, getattr(pair, side)) for pair in pairs)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
