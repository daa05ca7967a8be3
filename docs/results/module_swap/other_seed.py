"""Control: parts of the source-only model of the next seed. `other_seed.py RUNS` writes other_seed.csv.

RUNS is the folder of recipe.toml. Its rows have the columns of rows.csv, and the end "other seed".
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

import isogloss
from isogloss.core.run_parts import Optimization
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.tasks import TASKS
from isogloss.training.evaluation import evaluation

HERE = Path(__file__).parent
CORPORA: Mapping[str, Any] = {"upos": "ud", "ner": "wikiann"}
SOURCE, TARGETS = "qaa", ("qab", "qad", "qae", "qaf")
EXAMPLES = 150
PARTS = (
    "embeddings",
    *(f"layer {layer}" for layer in range(1, 5)),
    "attention",
    "feed-forward",
    "norms",
    "head",
    "encoder",
    "all",
)


def main(runs: Path) -> None:
    """Score the source-only model of each seed with each part of the next seed's model."""
    measurements = isogloss.read(runs).measurements
    scores = measurements.frame("scores")
    scores = scores[scores["model"].isin(measurements.methods["source-only"])]
    rows: list[dict[str, object]] = []
    for task in CORPORA:
        models = scores[scores["task"] == task].drop_duplicates("seed")
        folders = {
            int(row["seed"]): runs / str(row["model"]) / "model"
            for row in models.sort_values("seed").to_dict("records")
        }
        if len(folders) > 1:
            rows += score_task(task, folders)
    pd.DataFrame(rows).round(5).to_csv(HERE / "other_seed.csv", index=False)


def score_task(task: str, folders: Mapping[int, Path]) -> Iterator[dict[str, object]]:
    """Yield a row for each seed, part and language."""
    tokenizer = load_tokenizer(folders[0])
    data = {
        language: evaluation(
            TASKS[task],
            isogloss.load_corpus(CORPORA[task], language, "test", examples=EXAMPLES),
            tokenizer,
            Optimization(),
            language=language,
        )
        for language in (SOURCE, *TARGETS)
    }
    for seed in folders:
        start, end = (
            TASKS[task].head(folders[number], seed=None).eval()
            for number in (seed, (seed + 1) % len(folders))
        )

        def score(model: Any) -> dict[str, float]:
            return {language: examples.score(model) for language, examples in data.items()}

        table = isogloss.score_parts(start, end, score, PARTS)
        table = table[table["model"] == "start"]
        before = table[table["part"] == "none"].iloc[0]
        for row in table[table["part"] != "none"].to_dict("records"):
            for target in TARGETS:
                facts = {
                    "task": task,
                    "target": target,
                    "seed": seed,
                    "end": "other seed",
                    "changed": "start",
                }
                facts |= {"part": row["part"], "change": "swap"}
                for language in (SOURCE, target):
                    yield facts | {"language": language, "before": before[language], "score": row[language]}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
