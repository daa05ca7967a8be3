"""Published numbers next to the results of these runs, and differences from a baseline on both sides."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from isogloss.metrics.estimates import mean_std
from isogloss.reports.comparison import FEWEST
from isogloss.reports.frames import split_by
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import INPUTS, percent, plus_minus
from isogloss.reports.parts import Part
from isogloss.reports.scores import GAP, MEAN, ScoredSet, scored_sets
from isogloss.reports.tables import Table, text_table

PUBLISHED = "published"
"""The scale at which a recipe has the paper's encoders, data and languages."""

ORIGINAL = "original"

ALL_LANGUAGES = "mean"
"""Stands for the mean over all languages, the source among them."""

GAIN = " gain"
"""Ends a measure that is the difference from the original encoder."""

SYSTEM = ["system", "inputs", "encoder"]

UNCERTAIN = " ?: the number is of one of the encoders that have it here, and which is not certain."

ALTERNATIVE = "|"
"""Separator between the candidate encoders of a published number, if the encoder is uncertain."""

Row = Mapping[str, Any]


def published_tables(measurements: Measurements) -> list[Table]:
    """Return the published numbers next to ours, and their differences from the first system's."""
    if not measurements.published:
        return []
    sets = scored_sets(measurements)
    published_rows = [alternative for row in measurements.published for alternative in _alternatives(row)]
    ours = [_ours(measurements, sets, row) for row in published_rows]
    rows = [_beside(row, values) for row, values in zip(published_rows, ours, strict=True)]
    words = {"name": "published", "title": "Published next to ours", "caption": _caption(measurements)}
    heads = ["system", "encoder", "language", "measure", "ours", "seeds", "published", "difference", "page"]
    texts = pd.DataFrame([[_text(row, head) for head in heads] for row in rows], columns=heads)
    return [text_table(words, 4, texts, pd.DataFrame(rows)), *_differences(published_rows, ours)]


def _alternatives(row: Row) -> list[Row]:
    """Return a row for each encoder that a number may belong to. All but the first are alternatives."""
    names = row["encoder"].split(ALTERNATIVE)
    return [{**row, "encoder": name, "uncertain": len(names) > 1} for name in names]


def _ours(measurements: Measurements, sets: Sequence[ScoredSet], row: Row) -> pd.Series:
    """Return our values of a published number, by unit (seed). Empty without a measurement."""
    measure = row["measure"].removesuffix(GAIN)
    gain = row["measure"].endswith(GAIN)
    if measure in ("cka", "rho"):
        if measure == "rho":
            return _rho(measurements, sets, row).dropna()
        cka = _with_source(_cka(measurements, row))
        language = str(row["language"])
        return cka[language].dropna() if language in cka else pd.Series(dtype=float)
    values_by_kind: dict[bool, list[pd.Series]] = {True: [], False: []}
    for test_set in sets:
        if test_set.about["metric"] == measure and len(
            values := _values(measurements, test_set, row, gain=gain)
        ):
            values_by_kind[bool(test_set.rows["best"].all())].append(values)
    unit_values = values_by_kind[True] or values_by_kind[False]  # A language with only a dev split uses it.
    # With several test sets, none is meant.
    return unit_values[0] if len(unit_values) == 1 else pd.Series(dtype=float)


def _values(measurements: Measurements, test_set: ScoredSet, row: Row, *, gain: bool) -> pd.Series:
    values = _mean(test_set, _rows(measurements, test_set.rows, row, row["encoder"]), row["language"])
    if gain:
        values -= _mean(test_set, _rows(measurements, test_set.rows, row, ORIGINAL), row["language"])
    return values.dropna()


def _rows(measurements: Measurements, rows: pd.DataFrame, row: Row, encoder: str) -> pd.DataFrame:
    """Return the rows of a system (label of its method, and inputs) on an encoder, by label."""
    labels = rows["encoder.run"].map(lambda run: measurements.labels.get(run, ORIGINAL))
    is_chosen = rows["model"].isin(measurements.methods.get(row["system"], ())) & rows["inputs"].eq(
        row.get("inputs", "")
    )
    if labels.nunique() > 1 or encoder == ORIGINAL:  # Where a scale has one encoder, it stands for each.
        is_chosen &= labels == (encoder or ORIGINAL)
    return rows[is_chosen]


def _mean(test_set: ScoredSet, rows: pd.DataFrame, language: str) -> pd.Series:
    """Return the mean over the languages that a name stands for, by unit. The gap is source minus targets."""
    if rows.empty:
        return pd.Series(dtype=float)
    wide = rows.groupby([test_set.unit, "language"])["score"].mean().unstack("language")
    several = {
        MEAN: test_set.targets,
        ALL_LANGUAGES: (*test_set.sources, *test_set.targets, *test_set.unseen),
    }

    def mean(codes: Sequence[str]) -> pd.Series:
        return wide.reindex(columns=list(codes)).mean(axis=1, skipna=False)

    if language == GAP:
        return mean(test_set.sources) - mean(test_set.targets)
    return mean(several.get(language, (language,)))


def _cka(measurements: Measurements, row: Row) -> pd.DataFrame:
    """Return CKA with the source's states in the last layer [seed language] of a system's models.

    None where it was measured on several corpora or of several tasks.
    """
    rows = _rows(measurements, measurements.frame("cka"), row, row["encoder"])
    if len(rows[["corpus", "task"]].drop_duplicates()) > 1:
        rows = rows[:0]
    last_rows = select_deepest_layer(rows).astype({"cka": float})
    return last_rows.groupby(["seed", "second"])["cka"].mean().unstack("second")


def _with_source(cka: pd.DataFrame) -> pd.DataFrame:
    """Add the mean over all languages. As in the paper it includes the source, whose CKA with itself is 1."""
    target_count = len(cka.columns)
    return (
        cka.assign(**{ALL_LANGUAGES: (cka.sum(axis=1, skipna=False) + 1) / (target_count + 1)})
        if target_count
        else cka
    )


def _rho(measurements: Measurements, sets: Sequence[ScoredSet], row: Row) -> pd.Series:
    """Return Spearman's ρ over languages of CKA and score, by seed. Empty for fewer than three languages."""
    main = [
        test_set.rows for test_set in sets if (test_set.rows["best"] & test_set.rows["main"].eq(True)).all()
    ]
    rows = [
        score_rows for scores in main if len(score_rows := _rows(measurements, scores, row, row["encoder"]))
    ]
    if len(rows) != 1:
        return pd.Series(dtype=float)
    states = _cka(measurements, row)
    scores = rows[0].pivot_table(index="seed", columns="language", values="score")
    common = states.columns.intersection(scores.columns)
    if len(common) < FEWEST:
        return pd.Series(dtype=float)
    return states[common].corrwith(scores[common], axis=1, method="spearman")


def _beside(row: Row, values: pd.Series) -> Row:
    summary = mean_std(list(values)) if len(values) else None
    numbers: dict[str, object] = {
        "mean": summary and summary.mean,
        "std": summary and summary.std,
        "low": summary and summary.low,
        "high": summary and summary.high,
        "seeds": len(values),
        "difference": summary and summary.mean - row["value"],
    }
    return {**row, **numbers}


def _text(row: Row, head: str) -> str:
    if head == "system":
        return _show_system(row["system"], row.get("inputs", ""))
    if head == "ours":
        return _interval(row) if row["seeds"] else "–"
    if head == "published":
        return percent(row["value"]) + ("?" if row["uncertain"] else "")
    if head == "difference":
        return _format_signed(row["difference"])
    return str(row[head])


def _show_system(system: str, inputs: str) -> str:
    return system + INPUTS.get(inputs, f" · {inputs}")


def _interval(row: Row) -> str:
    interval = f" [{percent(row['low'])}, {percent(row['high'])}]" if row["seeds"] > 1 else ""
    return plus_minus(row["mean"], row["std"]) + interval


def _compare_signs(theirs: float, ours: float) -> str:
    if math.isnan(ours):
        return "–"
    return "yes" if (theirs > 0) == (ours > 0) else "no"


def _format_signed(value: float) -> str:
    return "–" if pd.isna(value) else f"{'+' * (value > 0)}{percent(value)}"


def _caption(measurements: Measurements) -> str:
    scale_text = f"at scale {measurements.scale}" if measurements.scale else "of the recipe without a scale"
    other_text = (
        f"These runs, {scale_text}, have other encoders, data and languages than the paper's, so that only "
        f"the order of systems and the sign of differences can be compared. "
    )
    return (
        f"{'' if measurements.scale == PUBLISHED else other_text}Percent; ours: mean ± standard deviation "
        f"over seeds [95 % interval, Student's t], and ours minus what was published. –: not measured by "
        f"these runs."
        f"{UNCERTAIN if any(ALTERNATIVE in str(row['encoder']) for row in measurements.published) else ''}"
    )


def _differences(published_rows: Sequence[Row], ours: Sequence[pd.Series]) -> list[Table]:
    """Return each system's mean difference from the first one's, as published and as measured.

    It is over the languages that have both numbers, on each side by itself. Adjusted encoders are
    compared with the original, on the same inputs where the first method has them there.
    """
    data = pd.DataFrame(published_rows).assign(
        ours=[values.mean() if len(values) else math.nan for values in ours]
    )
    data["inputs"] = data["inputs"].fillna("") if "inputs" in data else ""
    first_system = data["system"].iloc[0]
    first_inputs = data["inputs"].iloc[0]
    sides = ["value", "ours"]
    lines = []
    for (measure,), group in split_by(data, ["measure"], sort=False):
        systems = {
            key: score_rows.set_index("language")[sides]
            for key, score_rows in split_by(group, SYSTEM, sort=False)
        }
        for (system, inputs, encoder), numbers in systems.items():
            # Encoders are compared with the original, or each has separate systems.
            base = (first_system, first_inputs, ORIGINAL)
            base = base if base in systems else (first_system, first_inputs, encoder)
            similar = (first_system, inputs, ORIGINAL)
            if encoder != ORIGINAL and similar in systems:
                base = similar
            if base in systems and base != (system, inputs, encoder):
                gains = (numbers - systems[base]).dropna(subset="value")
                lines.append((_show_system(system, inputs), encoder, measure, *gains.mean()))
    if not lines:
        return []
    first_name = _show_system(first_system, first_inputs)
    rows = pd.DataFrame(lines, columns=["system", "encoder", "measure", "published", "ours"])
    rows["same sign"] = [
        _compare_signs(theirs, ours) for theirs, ours in zip(rows["published"], rows["ours"], strict=True)
    ]
    texts = rows.assign(**{side: rows[side].map(_format_signed) for side in ("published", "ours")})
    caption = f"Points above {first_name}, mean over the languages (or means) that have both numbers."
    if any(system != first_name and encoder == ORIGINAL for system, encoder, *_ in lines):
        caption += " Adjusted encoders are compared with the original on the same inputs."
    title = f"Differences from {first_name}, published and ours"
    words = {"name": "published-differences", "title": title, "caption": caption}
    return [text_table(words, 3, texts, rows)]


def select_deepest_layer(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the deepest layer measured of each corpus, task and encoder."""
    return rows[rows["layer"] == rows.groupby(["corpus", "task", "encoder"])["layer"].transform("max")]


PARTS: Sequence[Part] = (("published", published_tables),)
"""Figures and tables of this feature, by the section of a report that shows them."""
