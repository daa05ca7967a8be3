"""Adjusted encoders in reports: losses, and scores by the size of the bitext."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from isogloss.reports.comparison import TEST_SET, main_scores
from isogloss.reports.frames import list_columns
from isogloss.reports.line_figures import LOSS, SCORE, LineFigure
from isogloss.reports.measurements import Measurements
from isogloss.reports.parts import Part
from isogloss.reports.run_facts import ZERO_SHOT
from isogloss.reports.tables import Number, Summary


def _select_adjusted(_: Measurements, rows: pd.DataFrame) -> pd.DataFrame:
    return rows[(rows["kind"] == "encoder") & (rows["encoder.adjusted"] != "")]


def bitext_sizes(measurements: Measurements, rows: pd.DataFrame) -> pd.DataFrame:
    """Return scores of adjustments by number of translations, and scores of the original encoder.

    An adjustment to all translations has the number that it read.
    """
    rows = main_scores(rows[rows["reference"] == ZERO_SHOT])
    read = measurements.frame("bitext-read").groupby("run")["translations"].max()
    sizes = rows["encoder.size"].astype(float).fillna(rows["encoder.run"].map(read))
    test = [*TEST_SET, "way", "inputs", "inputs.translator", "language", "seed"]
    original = rows[rows["encoder.adjusted"] == ""].groupby(["encoder", *test], dropna=False)["score"].mean()
    rows = rows.assign(translations=sizes)[(rows["encoder.adjusted"] != "") & sizes.notna()]
    if rows.empty:
        return rows
    fields = [name for name in list_columns(rows) if name.startswith("encoder.adjusted.")]
    series = ["encoder.original", "encoder.adjusted", "encoder.pairs", "encoder.depth", *fields]
    rows = rows[rows.groupby(series, dropna=False)["translations"].transform("nunique") > 1]
    pairs = zip(rows["language"], rows["encoder.pairs"].str.replace("+", "-"), strict=True)
    line = ["" if language_code in codes.split("-") else "not adjusted to" for language_code, codes in pairs]
    settings = [
        ", ".join(str(value) for value in values) for _, *values in rows[fields].itertuples(name=None)
    ]
    rows = rows.assign(line=line, how=settings, translations=rows["translations"].astype(int))
    originals = rows.drop(columns="score").join(original, on=["encoder.original", *test])
    originals = originals.dropna(subset=["score"]).assign(line="original encoder")
    return pd.concat([rows, originals], ignore_index=True)


FIGURES = (
    LineFigure(
        section="training",
        frame="training-steps",
        name="adjusting",
        title="Adjusting",
        caption="Loss by step (logarithmic), one line per encoder; different sums are no better or worse.",
        panels=("encoder.adjusted",),
        lines=replace(LOSS, log="x"),
        choose=_select_adjusted,
        group_by=("encoder.adjusted",),
    ),
    LineFigure(
        section="bitext-size",
        frame="scores",
        name="bitext-size",
        title="Scores by the size of the bitext",
        caption="Source-only models on adjusted encoders; solid: languages that these were adjusted to.",
        panels=("corpus", "treebank", "task", "system", "source", "encoder.name", "encoder.languages", "how"),
        lines=replace(
            replace(
                SCORE, x="translations", color="language", dash="line", band=True, integer_x=False, log="x"
            ),
            labels=("translations", "score, percent"),
        ),
        choose=bitext_sizes,
        group_by=("encoder.adjusted", "encoder.pairs"),
    ),
)


def _sort_sizes(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.sort_values(["corpus", "task", "inputs", "language", "line", "translations"])


def _read_bitext_sizes(measurements: Measurements) -> pd.DataFrame:
    return bitext_sizes(measurements, measurements.frame("scores"))


BITEXT_SIZE = Summary(
    section="bitext-size",
    frame=_read_bitext_sizes,
    name="bitext-size",
    title="Scores by the number of translations",
    caption="Source-only models on adjusted encoders, percent, mean ± standard deviation over seeds.",
    by=(
        "corpus",
        "treebank",
        "inputs",
        "task",
        "source",
        "metric",
        "split",
        "encoder.name",
        "encoder.pairs",
        "how",
        "language",
        "line",
    ),
    keep=("language", "line"),
    values={"score": Number(column="score", scale=100, digits=1)},
    choose=_sort_sizes,
    pivot="translations",
)
"""Scores by amount of bitext for an adjustment ("The Impact of Cross-Lingual Adjustment …", Section 5.3)."""


PARTS: Sequence[Part] = tuple((part.section, part.show) for part in (*FIGURES, BITEXT_SIZE))
"""Figures and the table of this feature, by the section of a report that shows them."""
