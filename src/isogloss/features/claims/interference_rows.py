"""Rows that the fourth paper's claims are judged by: encoders with a role in the paper, and their scores."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pandas as pd

from isogloss.features.claims.comparisons import drop_strays, nearest
from isogloss.reports.comparison import filter_rows, row_keys
from isogloss.reports.frames import list_columns
from isogloss.reports.measurements import Measurements
from isogloss.reports.run_facts import FACTS
from isogloss.reports.similarity import noise_corrected

MASKED = "masked-language-modelling"
META = "meta-learning"

OWN = ("feed-forward", "attention", "adapter")
"""Kinds of language-specific modules, each judged separately."""

ROLES = {
    **{(MASKED, True, modules): modules for modules in (*OWN, "shared-adapter")},
    **{(MASKED, True, ""): "joint", (MASKED, False, ""): "mono", (META, True, "adapter"): "meta-adapter"},
    (MASKED, True, "embedding"): "joint",
}
"""The paper's roles of encoders, by method, whether there are several languages, and modules."""


def _is_other_step(step: str) -> bool:
    return step not in ("plain", "")


def _is_first_order(form: str) -> bool:
    return form == "first-order"


def _is_zero(share: float) -> bool:
    return share == 0


def _is_given(rate: object) -> bool:
    return rate != ""


OURS: Mapping[str, Callable[[Any], bool]] = {
    "inner_step": _is_other_step,
    "second_order": _is_first_order,
    "own_on_train": bool,
    "validation": _is_zero,
    **dict.fromkeys(("own_learning_rate", "inner_learning_rate"), _is_given),
    **dict.fromkeys(("mixed", "translation", "validation_text"), bool),
}
"""Settings that the paper does not have, by field. An encoder with one of them is not one of its systems.
Algorithm 1 has one rate for all, and updates each language's modules by losses on separate validation
text."""

RISE = 1.05
"""An encoder whose final perplexity is this multiple of its lowest has memorised its text."""

LATE = 0.8
"""Share of an encoder's steps after which its perplexity shows whether it still learns."""

STILL = 0.05
"""An encoder still learns if its perplexity falls by more than this share after ``LATE``."""

TRAINING = ["shape", "lines", "steps"]
"""Columns that identify an encoder's architecture, text and training."""

CURVE = ["encoder", "encoder.run", "language", "split"]
"""Columns that identify a curve of perplexity over steps."""

WITHIN = "within languages"
ZERO_SHOT = "zero-shot"

TASKS = {WITHIN: ("ner", "upos", "qa"), ZERO_SHOT: ("ner", "upos", "qa", "nli")}
"""The paper's tasks (Tables 2, 3, 6, 7)."""

METHOD = "encoder.method."
MODULES = "encoder.modules."

EMBEDDING = f"{MODULES}embedding"
"""Whether languages have embeddings, as the modules or in addition to modules."""

SETTINGS: Mapping[str, object] = {
    f"{METHOD}validation": 0.05,
    f"{METHOD}validation_subwords": None,
    f"{MODULES}reduction": 4,
    **{
        f"{MODULES}{name}": None
        for name in ("after", "invertible", "fallback", "normed", "activation", "leave_out")
    },
    EMBEDDING: None,
}
"""Fields unique to an encoder in a comparison. Among several encoders of a role, those with the nearest
values count."""

UNCOMPARED = (*(f"{METHOD}{name}" for name in (*OURS, "evaluate_every")), *SETTINGS)
"""Training fields in which encoders of a comparison may differ."""


def paper_encoders(rows: pd.DataFrame) -> pd.DataFrame:
    """Return pretrained encoders that have a role in the paper, with ids of what must be equal."""
    rows = rows[(rows["encoder.kind"] == "pretrain") & (rows["encoder.adjusted"] == "")]
    for name, is_ours in OURS.items():
        if (column := f"encoder.method.{name}") in rows:
            rows = filter_rows(rows, partial(_lacks, is_ours), column)
    languages = ["+".join(sorted(codes.split("+"))) for codes in rows["encoder.languages"]]
    several = ["+" in codes for codes in languages]
    vectors = rows.reindex(columns=[EMBEDDING])[EMBEDDING].eq(True)
    systems = zip(rows["encoder.method"], several, rows["encoder.modules"], strict=True)
    rows = rows.assign(
        role=[ROLES.get(system, "") for system in systems],
        **{EMBEDDING: (vectors | (rows["encoder.modules"] == "embedding")).map({True: True, False: ""})},
        languages=languages,
        lines=rows.reindex(columns=["encoder.lines"])["encoder.lines"].fillna("").astype(object),
        shape=row_keys(rows, _shape_columns(rows)),
        steps=row_keys(rows, training_columns(rows)),
    )
    return nearest(rows[rows["role"] != ""], ["role", *TRAINING, "languages"], SETTINGS)


def _lacks(is_ours: Callable[[Any], bool], value: Any) -> bool:
    return bool(pd.isna(value)) or not is_ours(value)


def training_columns(rows: pd.DataFrame) -> list[str]:
    """Return the columns of how an encoder was trained, and for how long."""
    return [name for name in list_columns(rows) if name.startswith(METHOD) and name not in UNCOMPARED]


def _shape_columns(rows: pd.DataFrame) -> list[str]:
    ignored_columns = {*FACTS, "encoder.lines", "encoder.depth"}
    ignored_prefixes = (METHOD, MODULES, "encoder.adjusted.")
    return [
        name
        for name in list_columns(rows)
        if name.startswith("encoder.")
        and name not in ignored_columns | set(ignored_prefixes)
        and not name.startswith(ignored_prefixes)
    ]


def steps_times(rows: pd.DataFrame, times: int) -> pd.Series:
    """Return the key of the same training with a multiple of its steps."""
    return row_keys(
        rows.assign(**{"encoder.method.steps": rows["encoder.method.steps"] * times}), training_columns(rows)
    )


def perplexity_rows(measurements: Measurements) -> pd.DataFrame:
    """Return the perplexity of the paper's encoders by step, without measurements of single steps."""
    rows = paper_encoders(measurements.frame("perplexity")).sort_values("step")
    return drop_strays(rows, ["encoder", "encoder.run"], ["corpus", "language", "split", "metric"])


def memorised_encoders(measurements: Measurements) -> set[str]:
    """Return the encoders with little text whose perplexity ends above its lowest: with every seed."""
    rows = perplexity_rows(measurements)
    ends = rows[rows["lines"] != ""].groupby(CURVE)["score"]
    rises = (ends.last() >= RISE * ends.min()).groupby(level="encoder").all()
    return set(rises[rises].index)


def stopped_encoders(measurements: Measurements) -> dict[str, bool]:
    """Return for each encoder with a curve of perplexity whether it has stopped learning."""
    rows = perplexity_rows(measurements)
    has_stopped: dict[str, list[bool]] = {}
    for (encoder, *_), curve in rows.groupby(CURVE):
        late = curve.loc[curve["step"] >= LATE * curve["step"].iloc[-1], "score"]
        if len(late) > 1:
            has_stopped.setdefault(str(encoder), []).append(bool(late.iloc[-1] > (1 - STILL) * late.iloc[0]))
    return {encoder: all(curves) for encoder, curves in has_stopped.items()}


def similar_parts(measurements: Measurements, frame: str, value: str = "cosine") -> pd.DataFrame:
    """Return the similarity of two languages in parts of joint encoders.

    Among several ways to train them, the one with the most pretraining seeds is used, then the longest.
    """
    rows = measurements.frame(frame)
    rows = paper_encoders(rows[rows["kind"] == "encoder"])
    joint = rows[rows["role"] == "joint"].assign(model=rows.get("model", rows["run"]))
    if len(joint):
        lengths = joint.assign(length=joint["encoder.method.steps"])
        sizes = lengths.groupby(TRAINING).agg({"encoder.seed": "nunique", "length": "first"})
        usual = sizes.sort_values(["encoder.seed", "length"], kind="stable").index[-1]
        joint = joint[(joint[TRAINING] == list(usual)).all(axis=1)]
    rows_corrected = noise_corrected(joint, value)
    return rows_corrected[rows_corrected["first"] != rows_corrected["second"]]


def _is_pretrained_on(language_code: str, languages: str) -> bool:
    return language_code in languages.split("+")


def _is_task_of_paper(task: str, task_kind: str) -> bool:
    return task in TASKS.get(task_kind, ())


def paper_scores(measurements: Measurements) -> pd.DataFrame:
    """Return scores on the paper's tasks, with ``half``: within languages or zero-shot."""
    rows = measurements.frame("scores")
    rows = paper_encoders(rows[(rows["inputs"] == "") & (rows["kind"] == "model")])
    rows = rows[rows["main"].astype(bool)]
    rows = filter_rows(rows, _is_pretrained_on, "language", "languages")
    models = zip(*(rows[name] for name in ("method", "language", "source", "target")), strict=True)
    rows = rows.assign(half=pd.Series([_half(*model) for model in models], index=rows.index, dtype=object))
    rows = filter_rows(rows, _is_task_of_paper, "task", "half")
    rows = rows.assign(start=rows["source"].where(rows["half"] == ZERO_SHOT, ""))
    training_columns = [name for name in list_columns(rows) if "optimization." in name or "peft" in name]
    equal_columns = ["corpus", "task", "split", "metric", "start", "shape", *training_columns]
    common = [name for name in equal_columns if name not in ("split", "metric")]
    return rows.assign(
        test=row_keys(rows, equal_columns),
        place=row_keys(rows, common),
        system=rows["encoder"].where(rows["role"] != "mono", "alone"),
    )


def _is_bilingual(languages: str) -> bool:
    return languages.count("+") == 1


def bilingual(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of encoders of two languages."""
    return filter_rows(rows, _is_bilingual, "languages")


def _half(method: str, language: str, source: str, target: str) -> str:
    if language == {"source-only": source, "target-only": target}.get(method):
        return WITHIN
    return ZERO_SHOT if method == "source-only" and "+" not in source else ""


def closer_pairs(measurements: Measurements, training: pd.DataFrame) -> pd.Series:
    """Return by seed the mean corrected cosine of pairs above the median overlap minus pairs below it."""
    pair = ["encoder", "first", "second"]
    overlap = measurements.frame("gradient-conflict").groupby(pair)["overlap"].mean()
    rows = training.dropna(subset=["corrected"]).drop(columns="overlap", errors="ignore")
    rows = rows.join(overlap, on=pair)
    median = rows.drop_duplicates(pair)["overlap"].median()
    sides = rows[rows["overlap"] > median], rows[rows["overlap"] < median]
    close, distant = (side.groupby("encoder.seed")["corrected"].mean() for side in sides)
    return (close - distant).dropna()


def reading(ours: pd.DataFrame, theirs: pd.DataFrame) -> str:
    """Name the training length of a monolingual and a joint encoder.

    Equal steps read more text of a language in a monolingual encoder.
    """
    if ours["role"].iloc[0] != "mono":
        return ""
    little = "little text, " if ours["lines"].iloc[0] else ""
    own_steps, joint = (int(side["encoder.method.steps"].iloc[0]) for side in (ours, theirs))
    return f" ({little}{own_steps:,} steps alone, {joint:,} joint in {theirs['languages'].iloc[0]})"
