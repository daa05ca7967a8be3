"""Runs of adjusted encoders, drawn so that it is known who gains: content, scores and what they kept."""

import json

import numpy as np
from kept_runs import predictions, write_scores
from synthetic_runs import measure, write_run

from isogloss.core.contributions import Contributions

BASE = {"kind": "pretrained", "source": "mini", "data": "00"}
HOW = "cross-lingual-adjustment"


def align(examples, pair="en-de", **aligner):
    about = {"bitext": "bible", "languages": pair, "split": "train", "examples": examples, "data": "1"}
    return {"kind": "align", **about, "aligner": {"kind": "fast-align", **aligner}}


def content(examples, *, pairs=("en-de",), how=HOW, encoder=None, **method):
    method = {"kind": how, "learning_rate": 5e-5, **method}
    aligned = [align(examples, pair) for pair in pairs]
    return {"kind": "adjust", "encoder": encoder or BASE, "method": method, "aligned": aligned, "seed": 0}


def label_of(run, name, base="mini"):
    size = run["aligned"][0]["examples"]
    pairs = "+".join(one["languages"] for one in run["aligned"])
    return f"{base}, {run['method']['kind']} on {f'{size} ' if size else ''}{pairs} ({name[:6]})"


def write_adjust(out, name, run, *, base="mini", read=None, losses=(9.0, 4.0, 2.0)):
    """Write one adjusting run; return the label of the encoder it made."""
    label = label_of(run, name, base)
    rows = [
        {"pair": one["languages"], "translations": read or one["examples"], "left_out": 0, "pulled": 7}
        for one in run["aligned"]
    ]
    rows += [{"step": 20 * n, "loss": loss, "rate": 1e-5} for n, loss in enumerate(losses, start=1)]
    write_run(out, name, {"kind": "adjust", "title": f"encoder {label}", "run": run, "rows": rows})
    return label


def write_system(out, name, gains, *, inputs="", keep=True, size=400, **about):
    """Write one score run; each language's chance of a right answer is 0.5 and its gain."""
    kept = []
    for place, (code, gain) in enumerate(gains.items()):
        drawn = np.random.default_rng((about.get("seed", 0), place)).random(size) < 0.5 + gain
        kept.append(
            predictions(code, {"accuracy": Contributions(drawn.astype(float).tolist(), [1.0] * size)})
        )
    write_scores(out, name, kept, keep=keep, **about)
    if inputs:
        path = out / name / "record.json"
        record = json.loads(path.read_text(encoding="utf-8"))
        record["run"]["inputs"] = inputs
        path.write_text(json.dumps(record), encoding="utf-8")
    return name


def distance(encoder, related, unrelated, auc, task="", method=""):
    about = {"encoder": encoder, "first": "en", "second": "de", "layer": -1, "distance": "l2"}
    about |= {"task": task, "method": method, "seed": 0} if task else {}
    numbers = {"related_mean": related, "unrelated_mean": unrelated, "auc": auc}
    return {**about, **numbers, "related_pairs": 9, "unrelated_pairs": 9}


def write_distances(out, rows):
    return write_run(out, "distances", measure("word-distance", rows))
