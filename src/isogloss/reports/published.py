"""What a paper printed beside what these runs measured, number by number, and differences from a baseline."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from isogloss.metrics.estimates import mean_std
from isogloss.reports.comparison import FEWEST
from isogloss.reports.measurements import Measurements
from isogloss.reports.mixup_comparisons import deepest_layer
from isogloss.reports.names import percent, plus_minus
from isogloss.reports.scores import GAP, MEAN, ScoredSet, scored_sets
from isogloss.reports.tables import Table, text_table

PUBLISHED = "published"
"""The scale at which a recipe has the paper's encoders, data and languages."""

ORIGINAL = "original"

ALL_LANGUAGES = "mean"
"""Stands for the mean over all languages, the source among them."""

GAIN = " gain"
"""Ends a measure that is the difference from the original encoder."""

SYSTEM = ["system", "encoder"]

Row = Mapping[str, Any]


def published_tables(m: Measurements) -> list[Table]:
    """Return the published numbers beside ours, and their differences from the first system's."""
    if not m.published:
        return []
    sets = scored_sets(m)
    ours = [_ours(m, sets, row) for row in m.published]
    rows = [_beside(row, own) for row, own in zip(m.published, ours, strict=True)]
    words = {"name": "published", "title": "Published beside ours", "caption": _caption(m)}
    heads = ["system", "encoder", "language", "measure", "ours", "seeds", "published", "difference", "page"]
    texts = pd.DataFrame([[_text(row, head) for head in heads] for row in rows], columns=heads)
    return [text_table(words, 4, texts, pd.DataFrame(rows)), *_differences(m.published, ours)]


def _ours(m: Measurements, sets: Sequence[ScoredSet], row: Row) -> pd.Series:
    """Return our values of a published number, by unit (seed); none where it was not measured."""
    measure, gain = row["measure"].removesuffix(GAIN), row["measure"].endswith(GAIN)
    if measure in ("cka", "rho"):
        states = _rho(m, sets, row) if measure == "rho" else _with_source(_cka(m, row)).get(row["language"])
        return pd.Series(dtype=float) if states is None else states.dropna()
    found: dict[bool, list[pd.Series]] = {True: [], False: []}
    for one in sets:
        if one.about["metric"] == measure and len(values := _values(m, one, row, gain=gain)):
            found[bool(one.rows["best"].all())].append(values)
    own = found[True] or found[False]  # A language of which there is dev alone is measured there.
    return own[0] if len(own) == 1 else pd.Series(dtype=float)  # Of several test sets, none is meant.


def _values(m: Measurements, one: ScoredSet, row: Row, *, gain: bool) -> pd.Series:
    own = _mean(one, _rows(m, one.rows, row, row["encoder"]), row["language"])
    if gain:
        own -= _mean(one, _rows(m, one.rows, row, ORIGINAL), row["language"])
    return own.dropna()


def _rows(m: Measurements, rows: pd.DataFrame, row: Row, encoder: str) -> pd.DataFrame:
    """Return those of a system, the recipe's label of its method and its inputs, on an encoder, by label."""
    method, _, inputs = row["system"].partition(" · ")
    labels = rows["encoder.run"].map(lambda run: m.labels.get(run, ORIGINAL))
    chosen = rows["model"].isin(m.methods.get(method, ())) & rows["inputs"].eq(inputs)
    if labels.nunique() > 1 or encoder == ORIGINAL:  # Where a scale has one encoder, it stands for each.
        chosen &= labels == (encoder or ORIGINAL)
    return rows[chosen]


def _mean(one: ScoredSet, rows: pd.DataFrame, language: str) -> pd.Series:
    """Return the mean over the languages that a name stands for, by unit; the gap is source minus targets."""
    if rows.empty:
        return pd.Series(dtype=float)
    wide = rows.groupby([one.unit, "language"])["score"].mean().unstack("language")
    several = {MEAN: one.targets, ALL_LANGUAGES: (*one.sources, *one.targets, *one.unseen)}

    def mean(codes: Sequence[str]) -> pd.Series:
        return wide.reindex(columns=list(codes)).mean(axis=1, skipna=False)

    if language == GAP:
        return mean(one.sources) - mean(one.targets)
    return mean(several.get(language, (language,)))


def _cka(m: Measurements, row: Row) -> pd.DataFrame:
    """Return CKA with the source's states in the last layer [seed language] of a system's models.

    None where it was measured on several corpora or of several tasks.
    """
    rows = _rows(m, m.frame("cka"), row, row["encoder"])
    if len(rows[["corpus", "task"]].drop_duplicates()) > 1:
        rows = rows[:0]
    last = deepest_layer(rows).astype({"cka": float})
    return last.groupby(["seed", "second"])["cka"].mean().unstack("second")


def _with_source(cka: pd.DataFrame) -> pd.DataFrame:
    """Add the mean over all languages; the paper's has the source, whose CKA with itself is 1."""
    others = len(cka.columns)
    return (
        cka.assign(**{ALL_LANGUAGES: (cka.sum(axis=1, skipna=False) + 1) / (others + 1)}) if others else cka
    )


def _rho(m: Measurements, sets: Sequence[ScoredSet], row: Row) -> pd.Series:
    """Return Spearman's ρ over languages of CKA and score, by seed; none with fewer than three languages."""
    main = [one.rows for one in sets if (one.rows["best"] & one.rows["main"].eq(True)).all()]
    rows = [own for one in main if len(own := _rows(m, one, row, row["encoder"]))]
    if len(rows) != 1:
        return pd.Series(dtype=float)
    states, scores = _cka(m, row), rows[0].pivot_table(index="seed", columns="language", values="score")
    common = states.columns.intersection(scores.columns)
    if len(common) < FEWEST:
        return pd.Series(dtype=float)
    return states[common].corrwith(scores[common], axis=1, method="spearman")


def _beside(row: Row, own: pd.Series) -> Row:
    over = mean_std([*own]) if len(own) else None
    numbers: dict[str, object] = {
        "mean": over and over.mean,
        "std": over and over.std,
        "low": over and over.low,
        "high": over and over.high,
        "seeds": len(own),
        "difference": over and over.mean - row["value"],
    }
    return {**row, **numbers}


def _text(row: Row, head: str) -> str:
    if head == "ours":
        return _interval(row) if row["seeds"] else "–"
    if head == "published":
        return percent(row["value"])
    if head == "difference":
        return _signed(row["difference"])
    return str(row[head])


def _interval(row: Row) -> str:
    about = f" [{percent(row['low'])}, {percent(row['high'])}]" if row["seeds"] > 1 else ""
    return plus_minus(row["mean"], row["std"]) + about


def _signed(value: float) -> str:
    return "–" if pd.isna(value) else f"{'+' * (value > 0)}{percent(value)}"


def _caption(m: Measurements) -> str:
    which = f"at scale {m.scale}" if m.scale else "of the recipe without a scale"
    other = (
        f"These runs, {which}, have other encoders, data and languages than the paper's, so that only the "
        f"order of systems and the sign of differences can be compared. "
    )
    return (
        f"{'' if m.scale == PUBLISHED else other}Percent; ours: mean ± standard deviation over seeds [95 % "
        f"interval, Student's t], and ours minus what was published. –: not measured by these runs."
    )


def _differences(published: Sequence[Row], ours: Sequence[pd.Series]) -> list[Table]:
    """Return each system's mean difference from the first one's, as published and as measured.

    It is over the languages that have both numbers, on each side by itself. Adjusted encoders are
    compared with the original, on the same inputs where the first method has them there.
    """
    data = pd.DataFrame(published).assign(ours=[own.mean() if len(own) else None for own in ours])
    data["ours"] = data["ours"].astype(float)
    first, sides, found = data["system"].iloc[0], ["value", "ours"], []
    for measure, group in data.groupby("measure", sort=False):
        systems = {key: own.set_index("language")[sides] for key, own in group.groupby(SYSTEM, sort=False)}
        for (system, encoder), own in systems.items():
            # Encoders are either what is compared, with the original, or each has systems of its own.
            base = (first, ORIGINAL) if (first, ORIGINAL) in systems else (first, encoder)
            alike = (" · ".join((first.partition(" · ")[0], *system.split(" · ")[1:])), ORIGINAL)
            if encoder != ORIGINAL and alike in systems:
                base = alike
            if base in systems and base != (system, encoder):
                each = (own - systems[base]).dropna(subset="value")
                found.append((system, encoder, measure, *each.mean()))
    if not found:
        return []
    rows = pd.DataFrame(found, columns=["system", "encoder", "measure", "published", "ours"])
    rows["same sign"] = [
        "–" if pd.isna(ours) else "yes" if (theirs > 0) == (ours > 0) else "no"
        for theirs, ours in zip(rows["published"], rows["ours"], strict=True)
    ]
    texts = rows.assign(**{side: rows[side].map(_signed) for side in ("published", "ours")})
    caption = f"Points above {first}, mean over the languages (or means) that have both numbers."
    if any(system != first and encoder == ORIGINAL for system, encoder, *_ in found):
        caption += " Adjusted encoders are compared with the original on the same inputs."
    title = f"Differences from {first}, published and ours"
    words = {"name": "published-differences", "title": title, "caption": caption}
    return [text_table(words, 3, texts, rows)]
