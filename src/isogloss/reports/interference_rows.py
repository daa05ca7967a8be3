"""Rows that the fourth paper's claims are judged by: encoders with a role in the paper, and their scores."""

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

OURS = {"inner_step": "preconditioned", "second_order": "first-order", "mixed": True, "translation": True}
"""Options that the paper does not have: encoders pretrained with one are left out."""

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
    for name, option in OURS.items():
        own = rows.get(f"encoder.method.{name}", pd.Series(index=rows.index, dtype=object))
        rows = rows[~(own.fillna(0).astype(bool) if option is True else own == option)]
    languages = ["+".join(sorted(one.split("+"))) for one in rows["encoder.languages"]]
    several = ["+" in one for one in languages]
    about = zip(rows["encoder.method"], several, rows["encoder.modules"], strict=True)
    rows = rows.assign(
        role=[ROLES.get(one, "") for one in about],
        languages=languages,
        lines=rows.reindex(columns=["encoder.lines"])["encoder.lines"].fillna("").astype(object),
        shape=row_keys(rows, [f"encoder.{name}" for name in SHAPE if f"encoder.{name}" in rows]),
        steps=row_keys(rows, [f"encoder.{name}" for name in STEPS if f"encoder.{name}" in rows]),
    )
    return rows[rows["role"] != ""]


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
