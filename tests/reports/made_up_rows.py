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
    **{"kind": "model", "task": "upos", "source": "qaa", "seed": 0, "method": "source-only"},
    **{"encoder": "small", "encoder.run": "small", "encoder.original": "small", "encoder.name": "small"},
    **{"encoder.kind": "pretrained", "encoder.seed": None, "encoder.size": None},
    "optimization.learning_rate": 2e-5,
}

MIXES = {
    **{"method": "x-mixup", "target": "qad", "method.layer": 0.0, "method.ratio": 0.5},
    **{"method.learned_ratio": True, "method.residual": "normed", "method.schedule": True},
    **{"method.mse": 1.0, "method.kl": 1.0, "method.decay": 0.0},
}
"""Fields of a whole X-Mixup. Use ``{**MIXES, "method.mse": 0.0}`` for an ablation."""

TRANSLATES = {"method": "translate-train", "target": "qad", "method.with_source": True}

BILINGUAL = {"method": "bilingual", "target": "qad"}


def read_by(own: Row) -> Row:
    """Return the facts of what a model read, by its method."""
    if own.get("kind") == "encoder":
        return {}
    languages = {name: own[name].split("+") if own[name] else [] for name in ("source", "target")}
    labels = {"labels": own["method.labels"]} if own.get("method.labels") else {}
    content = {
        "method": {"kind": own["auxiliary.method"] or own["method"], **labels},
        "optimization": {},
        "auxiliary": {"kind": own["auxiliary"]} if own["auxiliary"] else None,
        **languages,
    }
    return add_data_read(own, derive_data_read(content))


def facts(about: Mapping[str, Any]) -> Row:
    """Return all facts of a row; ``way`` and ``encoder.run`` follow from the others where not given."""
    own = {**PLAIN, "encoder.original": about.get("encoder", "small"), **about}
    own = {**own, **read_by(own), **about}
    if "encoder" in about and "encoder.run" not in about:
        seed = own["encoder.seed"]
        own["encoder.run"] = own["encoder"] if seed is None else f"{own['encoder']}-{seed}"
    names = [one for one in own if one.startswith(("method", "optimization.", "translator", "after."))]
    return {"way": " ".join(f"{one}={own[one]}" for one in sorted(names) if own[one] != ""), **_way(own)}


def _way(own: Row) -> Row:
    return {name: value for name, value in own.items() if name != "way" or value}


def model_of(own: Mapping[str, Any]) -> str:
    """Return the id of the model that these facts are of."""
    about = ("corpus", "task", "source", "target", "encoder.run", "seed")
    return " ".join(str(own[one]) for one in about) + f" {facts(own)['way']}"


def score(value: float, *, language: str = "qad", metric: str = "accuracy", **more: Any) -> Row:
    """Return a row of frame "scores"; facts with dots in ``about``."""
    about = {**more.pop("about", {}), **{one: more.pop(one) for one in list(more) if one in PLAIN}}
    own = facts(about)
    run = f"scores {own['inputs']} {own['inputs.translator']} {model_of(own)}"
    row = {"run": run, "model": model_of(own), "language": language, "split": "test", "metric": metric}
    return {**own, **row, "score": value, "main": True, "baseline": 0.2, "examples": 100, **more}


def path(scores: Mapping[float, float], *, role: str = "target", part: str = "all", **more: Any) -> list[Row]:
    """Return the points of one path of frame "interpolation", by alpha; from source-only to bilingual."""
    start = {"start.method": more.pop("start", "source-only"), "start.way": "start"}
    about = {
        **BILINGUAL,
        **more.pop("about", {}),
        **{one: more.pop(one) for one in list(more) if one in PLAIN},
    }
    own = facts(about)
    language = more.pop("language", own["source"] if role == "source" else own["target"])
    ends = {"run": "paths", "start": f"{start['start.method']} {own['seed']}", "end": model_of(own)}
    row = {**own, **start, **ends, "part": part, "role": role, "language": language, "split": "dev"}
    return [{**row, "metric": "accuracy", "alpha": at, "score": one, **more} for at, one in scores.items()]


def plane(
    score_at: Any, *, role: str = "target", grid: Sequence[float] = (0.0, 0.5, 1.0), **more: Any
) -> list[Row]:
    """Return the points of one plane of frame "plane"; ``score_at`` gives the score at two alphas."""
    own = facts({**BILINGUAL, **more})
    language = own["source"] if role == "source" else own["target"]
    ways = {
        "first.method": "source-only",
        "second.method": "target-only",
        "first.way": "a",
        "second.way": "b",
    }
    ends = {
        "run": "planes",
        "origin": model_of(own),
        "first": f"s {own['seed']}",
        "second": f"t {own['seed']}",
    }
    row = {**own, **ways, **ends, "part": "all", "role": role, "language": language, "split": "dev"}
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
    joins |= {one: more.pop(one) for one in list(more) if one in joins}
    own = facts({**BILINGUAL, **more.pop("about", {}), **more})
    ends = {"run": "deltas", "origin": model_of(own), "first": "s", "second": "t", "part": "all"}
    return {**own, **joins, **ends, "norm_first": ratio, "norm_second": 1.0, "ratio": ratio, "angle": angle}


def cka(value: float, *, language: str = "qad", layer: int = 4, **more: Any) -> Row:
    """Return a row of frame "cka", of a model, or of an encoder where ``kind`` says so."""
    own = facts({"corpus": "bitext", **more.pop("about", {}), **more})
    row = {"run": f"cka {model_of(own)}", "model": model_of(own), "first": own["source"], "second": language}
    return {**own, **row, "layer": layer, "sentences": 60, "cka": value, "debiased": value}


def centroid(between: float, *, language: str = "qad", layer: int = 4, **more: Any) -> Row:
    """Return a row of frame "representation-map": a language's centroid."""
    own = facts({"corpus": "bitext", **more})
    row = {"run": f"map {model_of(own)}", "model": model_of(own), "layer": layer, "language": language}
    shape = {"sentences": 60, "what": "centroid", "x": 0.0, "y": 0.0, "explained_x": 0.5, "explained_y": 0.2}
    return {**own, **row, **shape, "between": between}


def mixup_ratio(mean: float, std: float, *, language: str = "qad", **more: Any) -> Row:
    """Return a row of frame "mixup-ratio"."""
    own = facts({**MIXES, "inputs": "paired", **more.pop("about", {}), **more})
    row = {"run": f"ratio {model_of(own)}", "model": model_of(own), "language": language, "split": "test"}
    quantiles = dict.fromkeys(("lowest", "q05", "q25", "median", "q75", "q95", "highest"), mean)
    return {**own, **row, "examples": 30, "mean": mean, "std": std, **quantiles}


EMPTY = {
    **dict.fromkeys((*TESTED, *FACTS), ""),
    **dict.fromkeys(NUMBERS),
    **{"run": "r", "encoder": "enc", "encoder.run": "enc"},
    **{"encoder.kind": "pretrained", "encoder.name": "mini"},
}


def frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows as a frame with the facts and types that measurements have."""
    own = [{**EMPTY, "encoder.original": row.get("encoder", "enc"), **row} for row in rows]
    own = [row if row["reference"] or not row["method"] else {**row, **read_by(row)} for row in own]
    made = pd.DataFrame(own).astype(dict.fromkeys(NUMBERS, "Int64"))
    # Texts as objects in one block, as in measurements: to select rows of others takes ten times as long.
    return made.astype(dict.fromkeys(made.select_dtypes("str"), object)).copy()


def make_measurements(
    predictions: Mapping[str, dict[str, StoredPredictions]] | None = None,
    **frames: Iterable[Mapping[str, Any]],
) -> Measurements:
    """Return measurements of these rows; a frame's name has underscores for dashes."""
    made = {name.replace("_", "-"): frame(rows) for name, rows in frames.items()}
    return Measurements(runs=list[PlannedRun](), _frames=made, _predictions=dict(predictions or {}))


def stored_predictions(rows: Iterable[Row], right: Any) -> dict[str, dict[str, StoredPredictions]]:
    """Return the predictions of score rows: ``right(row)`` gives each example as 1.0 or 0.0."""
    found: dict[str, dict[str, StoredPredictions]] = {}
    for row in rows:
        part = np.asarray(right(row), dtype=float)
        ids = tuple(str(one) for one in range(len(part)))
        found.setdefault(row["run"], {})[row["language"]] = StoredPredictions(
            ids=ids, measures={row["metric"]: (part, np.ones_like(part))}
        )
    return found


def shuffle_rows(rows: Iterable[Row], seed: int = 0) -> list[Row]:
    """Return the rows in a different order."""
    own = list(rows)
    return [own[at] for at in np.random.default_rng(seed).permutation(len(own))]
