"""Rows made up for the laws of reports: each has every fact that a frame has, and few words."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from isogloss.data.result_files import StoredPredictions
from isogloss.reports.measurements import FACTS, TESTED, Measurements, PlannedRun
from isogloss.reports.run_facts import add_data_read, derive_data_read

Row = dict[str, Any]

NUMBERS = ("seed", "encoder.seed", "encoder.size")

PLACE = {"corpus": "ud", "inputs": "", "treebank": "", "inputs.translator": ""}

PLAIN = {
    **dict.fromkeys(FACTS, ""),
    **PLACE,
    "kind": "model",
    "task": "upos",
    "source": "qaa",
    "seed": 0,
    "method": "source-only",
    "encoder": "small",
    "encoder.run": "small",
    "encoder.original": "small",
    "encoder.name": "small",
    "encoder.kind": "pretrained",
    "encoder.seed": None,
    "encoder.size": None,
    "optimization.learning_rate": 2e-5,
}

MIXES = {
    "method": "x-mixup",
    "target": "qad",
    "method.layer": 0.0,
    "method.ratio": 0.5,
    "method.learned_ratio": True,
    "method.residual": "normed",
    "method.schedule": True,
    "method.mse": 1.0,
    "method.kl": 1.0,
    "method.decay": 0.0,
}
"""Fields of a whole X-Mixup. Use ``{**MIXES, "method.mse": 0.0}`` for an ablation."""

TRANSLATES = {"method": "translate-train", "target": "qad", "method.with_source": True}

BILINGUAL = {"method": "bilingual", "target": "qad"}


def read_by(own_row: Row) -> Row:
    """Return the facts of what a model read, by its method."""
    if own_row.get("kind") == "encoder":
        return {}
    languages = {name: own_row[name].split("+") if own_row[name] else [] for name in ("source", "target")}
    labels = {"labels": own_row["method.labels"]} if own_row.get("method.labels") else {}
    content = {
        "method": {"kind": own_row["auxiliary.method"] or own_row["method"], **labels},
        "optimization": {},
        "auxiliary": {"kind": own_row["auxiliary"]} if own_row["auxiliary"] else None,
        **languages,
    }
    return add_data_read(own_row, derive_data_read(content))


def facts(options: Mapping[str, Any]) -> Row:
    """Return all facts of a row; ``way`` and ``encoder.run`` follow from the others where not given."""
    fields = {**PLAIN, "encoder.original": options.get("encoder", "small"), **options}
    fields = {**fields, **read_by(fields), **options}
    if "encoder" in options and "encoder.run" not in options:
        seed = fields["encoder.seed"]
        fields["encoder.run"] = fields["encoder"] if seed is None else f"{fields['encoder']}-{seed}"
    names = [
        field for field in fields if field.startswith(("method", "optimization.", "translator", "after."))
    ]
    return {
        "way": " ".join(f"{name}={fields[name]}" for name in sorted(names) if fields[name] != ""),
        **_way(fields),
    }


def _way(own_row: Row) -> Row:
    return {name: value for name, value in own_row.items() if name != "way" or value}


def model_of(own_row: Mapping[str, Any]) -> str:
    """Return the id of the model that these facts are of."""
    texts = ("corpus", "task", "source", "target", "encoder.run", "seed")
    return " ".join(str(own_row[text]) for text in texts) + f" {facts(own_row)['way']}"


def score(value: float, *, language: str = "qad", metric: str = "accuracy", **more: Any) -> Row:
    """Return a row of frame "scores". Facts with dots in ``about``."""
    options = {**more.pop("about", {}), **{item: more.pop(item) for item in list(more) if item in PLAIN}}
    own_row = facts(options)
    run = f"scores {own_row['inputs']} {own_row['inputs.translator']} {model_of(own_row)}"
    row = {"run": run, "model": model_of(own_row), "language": language, "split": "test", "metric": metric}
    return {**own_row, **row, "score": value, "main": True, "baseline": 0.2, "examples": 100, **more}


def path(scores: Mapping[float, float], *, role: str = "target", part: str = "all", **more: Any) -> list[Row]:
    """Return the points of one path of frame "interpolation", by alpha. From source-only to bilingual."""
    start = {"start.method": more.pop("start", "source-only"), "start.way": "start"}
    options = {
        **BILINGUAL,
        **more.pop("about", {}),
        **{item: more.pop(item) for item in list(more) if item in PLAIN},
    }
    own_row = facts(options)
    language = more.pop("language", own_row["source"] if role == "source" else own_row["target"])
    ends = {"run": "paths", "start": f"{start['start.method']} {own_row['seed']}", "end": model_of(own_row)}
    row = {**own_row, **start, **ends, "part": part, "role": role, "language": language, "split": "dev"}
    return [
        {**row, "metric": "accuracy", "alpha": name, "score": item, **more} for name, item in scores.items()
    ]


def plane(
    score_at: Any, *, role: str = "target", grid: Sequence[float] = (0.0, 0.5, 1.0), **more: Any
) -> list[Row]:
    """Return the points of one plane of frame "plane". ``score_at`` gives the score at two alphas."""
    own_row = facts({**BILINGUAL, **more})
    language = own_row["source"] if role == "source" else own_row["target"]
    ways = {
        "first.method": "source-only",
        "second.method": "target-only",
        "first.way": "a",
        "second.way": "b",
    }
    ends = {
        "run": "planes",
        "origin": model_of(own_row),
        "first": f"s {own_row['seed']}",
        "second": f"t {own_row['seed']}",
    }
    row = {**own_row, **ways, **ends, "part": "all", "role": role, "language": language, "split": "dev"}
    return [
        {**row, "metric": "accuracy", "alpha_first": a, "alpha_second": b, "score": score_at(a, b)}
        for a in grid
        for b in grid
    ]


def delta(ratio: float, angle: float = 55.0, **more: Any) -> Row:
    """Return a row of frame "deltas": from bilingual to source-only and to target-only."""
    joins = {
        "first.method": "source-only",
        "second.method": "target-only",
        "first.way": "a",
        "second.way": "b",
    }
    joins |= {item: more.pop(item) for item in list(more) if item in joins}
    own_row = facts({**BILINGUAL, **more.pop("about", {}), **more})
    ends = {"run": "deltas", "origin": model_of(own_row), "first": "s", "second": "t", "part": "all"}
    return {
        **own_row,
        **joins,
        **ends,
        "norm_first": ratio,
        "norm_second": 1.0,
        "ratio": ratio,
        "angle": angle,
    }


def cka(value: float, *, language: str = "qad", layer: int = 4, **more: Any) -> Row:
    """Return a row of frame "cka", of a model, or of an encoder where ``kind`` says so."""
    own_row = facts({"corpus": "bitext", **more.pop("about", {}), **more})
    row = {
        "run": f"cka {model_of(own_row)}",
        "model": model_of(own_row),
        "first": own_row["source"],
        "second": language,
    }
    return {**own_row, **row, "layer": layer, "sentences": 60, "cka": value, "debiased": value}


def centroid(distance: float, *, language: str = "qad", layer: int = 4, **more: Any) -> Row:
    """Return a row of frame "representation-map": a language's centroid."""
    own_row = facts({"corpus": "bitext", **more})
    row = {
        "run": f"map {model_of(own_row)}",
        "model": model_of(own_row),
        "layer": layer,
        "language": language,
    }
    shape = {"sentences": 60, "what": "centroid", "x": 0.0, "y": 0.0, "explained_x": 0.5, "explained_y": 0.2}
    return {**own_row, **row, **shape, "between": distance}


def mixup_ratio(mean: float, std: float, *, language: str = "qad", **more: Any) -> Row:
    """Return a row of frame "mixup-ratio"."""
    own_row = facts({**MIXES, "inputs": "paired", **more.pop("about", {}), **more})
    row = {
        "run": f"ratio {model_of(own_row)}",
        "model": model_of(own_row),
        "language": language,
        "split": "test",
    }
    quantiles = dict.fromkeys(("lowest", "q05", "q25", "median", "q75", "q95", "highest"), mean)
    return {**own_row, **row, "examples": 30, "mean": mean, "std": std, **quantiles}


EMPTY = {
    **dict.fromkeys((*TESTED, *FACTS), ""),
    **dict.fromkeys(NUMBERS),
    "run": "r",
    "encoder": "enc",
    "encoder.run": "enc",
    "encoder.kind": "pretrained",
    "encoder.name": "mini",
}


def frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows as a frame with the facts and types that measurements have."""
    own_part = [{**EMPTY, "encoder.original": row.get("encoder", "enc"), **row} for row in rows]
    own_part = [row if row["reference"] or not row["method"] else {**row, **read_by(row)} for row in own_part]
    result = pd.DataFrame(own_part).astype(dict.fromkeys(NUMBERS, "Int64"))
    # Texts as objects in one block, as in measurements: to select rows of others takes ten times as long.
    return result.astype(dict.fromkeys(result.select_dtypes("str"), object)).copy()


def make_measurements(
    predictions: Mapping[str, dict[str, StoredPredictions]] | None = None,
    **frames: Iterable[Mapping[str, Any]],
) -> Measurements:
    """Return measurements of these rows. A frame's name has underscores for dashes."""
    result = {name.replace("_", "-"): frame(rows) for name, rows in frames.items()}
    return Measurements(runs=list[PlannedRun](), _frames=result, _predictions=dict(predictions or {}))


def stored_predictions(rows: Iterable[Row], right: Any) -> dict[str, dict[str, StoredPredictions]]:
    """Return the predictions of score rows: ``right(row)`` gives each example as 1.0 or 0.0."""
    result: dict[str, dict[str, StoredPredictions]] = {}
    for row in rows:
        part = np.asarray(right(row), dtype=float)
        ids = tuple(str(index) for index in range(len(part)))
        result.setdefault(row["run"], {})[row["language"]] = StoredPredictions(
            ids=ids, measures={row["metric"]: (part, np.ones_like(part))}
        )
    return result


def shuffle_rows(rows: Iterable[Row], seed: int = 0) -> list[Row]:
    """Return the rows in a different order."""
    own_rows = list(rows)
    return [own_rows[position] for position in np.random.default_rng(seed).permutation(len(own_rows))]
