"""Walk straight from a source-only model to a bilingual one, and score every stop in both languages.

python examples/path.py    # paper: "Zero-shot Cross-lingual Transfer is Under-specified Optimization", Eq. 1
"""

from dataclasses import replace
from pathlib import Path

import isogloss


def main(folder: Path, examples: int = 1500) -> None:
    result = isogloss.run(
        "quickstart",
        out=folder,
        changes={
            "grid.corpus": "ud",
            "grid.task": "upos",
            "grid.targets": ["qad"],
            "grid.seeds": [0],
            "grid.examples": examples,
            "grid.method": [{"name": "source-only"}, {"name": "bilingual"}],
            "measure": [],
        },
    )
    start, end = (isogloss.load_model(folder / record.id) for record in result.records)
    dev = {language: isogloss.load_corpus("ud", language, "dev", examples=200) for language in ("qaa", "qad")}
    path = isogloss.path(
        start.network,
        end.network,
        lambda network: {
            language: replace(start, network=network).score(owner) for language, owner in dev.items()
        },
        alphas=[0, 0.25, 0.5, 0.75, 1],
    )
    for alpha, scores in path.iterrows():
        print(f"α = {alpha:.2f}", *(f"{language}: {score:.3f}" for language, score in scores.items()))


if __name__ == "__main__":
    main(Path("runs/path"))
