"""Rows that the fourth paper's claims are judged by: encoders with a role in the paper, and their scores."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pandas as pd

from isogloss.reports.comparison import filter_rows, main_scores, row_keys
from isogloss.reports.measurements import Measurements
from isogloss.reports.similarity import noise_corrected

MASKED, META = "masked-language-modelling", "meta-learning"

OWN = ("feed-forward", "attention", "adapter")
"""Kinds of language-specific modules, each judged separately."""

ROLES = {
    **{(MASKED, True, modules): modules for modules in (*OWN, "shared-adapter")},
    **{(MASKED, True, ""): "joint", (MASKED, False, ""): "mono", (META, True, "adapter"): "meta-adapter"},
}
"""The paper's roles of encoders, by method, whether there are several languages, and modules."""

OURS: Mapping[str, Callable[[Any], bool]] = {
    "inner_step": lambda step: step == "preconditioned",
    "second_order": lambda form: form == "first-order",
    "own_on_train": bool,
    "validation": lambda share: share == 0,
    **dict.fromkeys(("own_learning_rate", "inner_learning_rate"), lambda rate: rate != ""),
    **dict.fromkeys(("mixed", "translation"), bool),
}
"""What is not in the paper, by field: an encoder pretrained so is none of its systems. Algorithm 1 has one
rate for all, and moves each language's modules by losses of validation text that is set apart."""

RISE = 1.05
"""An encoder whose final perplexity is this multiple of its lowest has memorised its text."""

LATE, STILL = 0.8, 0.05
"""An encoder still learns if its perplexity falls by more than 5 % after four fifths of its steps."""

CURVE = ["encoder", "encoder.run", "language", "split"]
"""Columns that identify a curve of perplexity over steps."""

WITHIN, ZERO_SHOT = "within languages", "zero-shot"

TASKS = {WITHIN: ("ner", "upos", "qa"), ZERO_SHOT: ("ner", "upos", "qa", "nli")}
"""The paper's tasks (Tables 2, 3, 6, 7)."""

SHAPE = (
    "family",
    "layers",
    "dim",
    "heads",
    "feed_forward",
    "vocabulary",
    "positions",
    "dropout",
    "text",
    "start",
)
STEPS = ("method.steps", "method.batch_subwords", "method.block")


def paper_encoders(rows: pd.DataFrame) -> pd.DataFrame:
    """Return pretrained encoders that have a role in the paper, with ids of what must be equal."""
    rows = rows[(rows["encoder.kind"] == "pretrain") & (rows["encoder.adjusted"] == "")]
    for name, is_ours in OURS.items():
        if (column := f"encoder.method.{name}") in rows:
            rows = filter_rows(rows, partial(_lacks, is_ours), column)
    languages = ["+".join(sorted(one.split("+"))) for one in rows["encoder.languages"]]
    several = ["+" in one for one in languages]
    about = zip(rows["encoder.method"], several, rows["encoder.modules"], strict=True)
    rows = rows.assign(
        role=[ROLES.get(one, "") for one in about],
        languages=languages,
        lines=rows.reindex(columns=["encoder.lines"])["encoder.lines"].fillna("").astype(object),
        shape=row_keys(rows, [f"encoder.{name}" for name in SHAPE if f"encoder.{name}" in rows]),
        steps=row_keys(rows, step_columns(rows)),
    )
    return rows[rows["role"] != ""]


def _lacks(is_ours: Callable[[Any], bool], value: Any) -> bool:
    return bool(pd.isna(value)) or not is_ours(value)


def step_columns(rows: pd.DataFrame) -> list[str]:
    """Return the columns of how much an encoder read."""
    return [f"encoder.{name}" for name in STEPS if f"encoder.{name}" in rows]


def steps_times(rows: pd.DataFrame, times: int) -> pd.Series:
    """Return the key of the same training with a multiple of its steps."""
    return row_keys(
        rows.assign(**{"encoder.method.steps": rows["encoder.method.steps"] * times}), step_columns(rows)
    )


def memorised_encoders(m: Measurements) -> set[str]:
    """Return the encoders with little text whose perplexity ends above its lowest: with every seed."""
    rows = paper_encoders(m.frame("perplexity")).sort_values("step")
    ends = rows[rows["lines"] != ""].groupby(CURVE)["score"]
    rises = (ends.last() >= RISE * ends.min()).groupby(level="encoder").all()
    return set(rises[rises].index)


def stopped_encoders(m: Measurements) -> dict[str, bool]:
    """Return for each encoder with a curve of perplexity whether it has stopped learning."""
    rows = paper_encoders(m.frame("perplexity")).sort_values("step")
    stopped: dict[str, list[bool]] = {}
    for (encoder, *_), curve in rows.groupby(CURVE):
        late = curve.loc[curve["step"] >= LATE * curve["step"].iloc[-1], "score"]
        if len(late) > 1:
            stopped.setdefault(str(encoder), []).append(bool(late.iloc[-1] > (1 - STILL) * late.iloc[0]))
    return {encoder: all(curves) for encoder, curves in stopped.items()}


def similar_parts(m: Measurements, frame: str, value: str = "cosine") -> pd.DataFrame:
    """Return the similarity of two languages in parts of joint encoders."""
    rows = m.frame(frame)
    rows = paper_encoders(rows[rows["kind"] == "encoder"])
    found = noise_corrected(rows[rows["role"] == "joint"].assign(model=rows.get("model", rows["run"])), value)
    return found[found["first"] != found["second"]]


def paper_scores(m: Measurements) -> pd.DataFrame:
    """Return scores on the paper's tasks, with ``half``: within languages or zero-shot."""
    rows = m.frame("scores")
    rows = paper_encoders(rows[(rows["inputs"] == "") & (rows["kind"] == "model")])
    rows = main_scores(rows)
    rows = filter_rows(rows, lambda code, languages: code in languages.split("+"), "language", "languages")
    about = zip(*(rows[name] for name in ("method", "language", "source", "target")), strict=True)
    rows = rows.assign(half=pd.Series([_half(*one) for one in about], index=rows.index, dtype=object))
    rows = filter_rows(rows, lambda task, half: task in TASKS.get(half, ()), "task", "half")
    rows = rows.assign(start=rows["source"].where(rows["half"] == ZERO_SHOT, ""))
    trained = [name for name in rows if "optimization." in name or "peft" in name]
    same = ["corpus", "task", "split", "metric", "start", "shape", *trained]
    return rows.assign(
        test=row_keys(rows, same), system=rows["encoder"].where(rows["role"] != "mono", "alone")
    )


def _half(method: str, language: str, source: str, target: str) -> str:
    if language == {"source-only": source, "target-only": target}.get(method):
        return WITHIN
    return ZERO_SHOT if method == "source-only" and "+" not in source else ""
