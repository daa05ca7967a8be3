"""Train a part-of-speech tagger on one language. How good is it in three languages without labels?

python examples/zero_shot.py    # the built-in languages: nothing is downloaded
"""

from pathlib import Path

import isogloss


def main(path: Path, examples: int = 1500) -> None:
    result = isogloss.run(
        "quickstart",
        out=path,
        changes={
            "grid.corpus": "ud",
            "grid.task": "upos",
            "grid.targets": ["qab", "qad", "qag"],
            "grid.seeds": [0],
            "grid.examples": examples,
            "grid.method": [{"name": "source-only"}],
            "measure": [{"name": "scores", "split": "test"}, {"name": "transfer-gap", "split": "test"}],
        },
    )
    model, scores, gap = result.records
    for row in scores.rows:
        if row["main"]:
            print(f"{row['language']}: {row['metric']} {row['score']:.3f}")
    (row,) = gap.rows
    print(f"transfer gap: {row['gap']:.3f} (source minus the mean of the targets)")

    tagger = isogloss.load_model(path / model.id)
    (labels,) = tagger.predict(["tuki mirne vuso ."])
    print(*labels)


if __name__ == "__main__":
    main(Path("runs/zero-shot"))
