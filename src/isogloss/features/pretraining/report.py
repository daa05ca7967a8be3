"""Pretraining in reports: losses, perplexities, parameters, and what languages lose by sharing an encoder."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from isogloss.reports.comparison import filter_rows, main_scores
from isogloss.reports.line_figures import DEV, LOSS, LineFigure
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import language
from isogloss.reports.parts import Part, summary_parts
from isogloss.reports.run_facts import ZERO_SHOT


def _select_pretrained(_: Measurements, rows: pd.DataFrame) -> pd.DataFrame:
    rows = rows[(rows["kind"] == "encoder") & (rows["encoder.adjusted"] == "")]
    return rows.assign(whose=rows["language"].astype(object).fillna("").replace("", "all languages"))


def _name_languages(_: Measurements, rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(whose=rows["language"].map(language))


FIGURES = (
    LineFigure(
        section="training",
        frame="training-steps",
        name="pretraining",
        title="Pretraining",
        caption="Loss (nats per masked subword) by step, mean over seeds; band: one standard deviation.",
        panels=("encoder.label",),
        lines=replace(LOSS, color="whose", band=True),
        choose=_select_pretrained,
    ),
    LineFigure(
        section="training",
        frame="perplexity",
        name="perplexity",
        title="Perplexity on held-out text",
        caption=(
            "Perplexity of masked subwords by epoch, mean over seeds. It is per subword: only encoders with "
            "one vocabulary can be compared."
        ),
        panels=("whose",),
        lines=replace(DEV, color="encoder.label", dash="", labels=("epoch", "perplexity"), log="y"),
        choose=_name_languages,
    ),
)


def last_and_lowest(rows: pd.DataFrame) -> pd.DataFrame:
    """Return for each run and language the final perplexity, the lowest with its epoch, and that before."""
    rows = rows.sort_values("epoch", kind="stable")
    keys = ["run", "language"]
    start_scores = rows[rows["step"] == 0].set_index(keys)["score"].rename("before")
    lowest = rows.loc[rows.groupby(keys)["score"].idxmin()].set_index(keys)[["score", "epoch"]]
    last_rows = rows.drop_duplicates(keys, keep="last").sort_values("language", kind="stable")
    lowest = lowest.rename(columns={"score": "lowest", "epoch": "lowest_epoch"})
    return last_rows.join(lowest, on=keys).join(start_scores, on=keys)


def parameter_counts(rows: pd.DataFrame) -> pd.DataFrame:
    """Return parameter counts of each encoder: shared, of one language, used per text, and total."""
    is_own = rows["language"] != ""
    parts = {"shared": rows["parameters"].mask(is_own, 0), "own": rows["parameters"].where(is_own, 0)}
    run_groups = rows.assign(**parts).groupby("run")
    rows = rows.assign(shared=run_groups["shared"].transform("sum"), own=run_groups["own"].transform("max"))
    total = run_groups["parameters"].transform("sum")
    return rows.assign(read=rows["shared"] + rows["own"], total=total).drop_duplicates("encoder")


def _select_transfers(scores: pd.DataFrame) -> pd.DataFrame:
    """Return models trained in one language, on encoders pretrained here on it and on the one tested."""
    rows = main_scores(scores[scores["inputs"].eq("") & scores["encoder.kind"].eq("pretrain")])
    is_zero_shot = rows["reference"] == ZERO_SHOT
    rows = rows.assign(plain=~is_zero_shot, trained=rows["source"].where(is_zero_shot, rows["target"]))
    is_within = rows["trained"] == rows["language"]
    arrow = (rows["trained"] + " → " + rows["language"]).mask(is_within, rows["language"] + " within")
    rows = rows.assign(within=~is_within, cell=rows["task"] + " " + arrow)
    labels = rows["read.labels"]
    rows = rows[is_zero_shot | (is_within & rows["read.plain"].eq("yes") & labels.eq(rows["target"]))]
    read = ("encoder.languages", "trained", "language")
    rows = filter_rows(rows, lambda languages, *codes: set(codes) <= set(languages.split("+")), *read)
    if rows["encoder"].nunique() < 2:
        return rows.head(0)
    an_encoder = ["encoder", "encoder.seed", "corpus", "cell"]
    rows = rows.sort_values(["within", "task", "cell", "plain"], kind="stable")
    rows = rows.drop_duplicates([*an_encoder, "seed"])
    return rows.assign(score=rows.groupby(an_encoder)["score"].transform("mean")).drop_duplicates(an_encoder)


FUNCTIONS: Mapping[str, Mapping[str, Any]] = {
    "perplexity-by-language": {"choose": last_and_lowest},
    "parameters": {"choose": parameter_counts},
    "interference": {"choose": _select_transfers},
}
"""Functions that select the rows of tables."""

PARTS: Sequence[Part] = (
    *((figure.section, figure.show) for figure in FIGURES),
    *summary_parts(__file__, FUNCTIONS),
)
"""Figures and tables of this feature, by the section of a report that shows them."""
