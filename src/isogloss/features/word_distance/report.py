"""Word distances by stage of training.

"… Cross-Lingual Adjustment …", Figs 1 and 2: original, adjusted, fine-tuned, adjusted and fine-tuned, and
fine-tuned in continual mode.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from isogloss.reports import drawing
from isogloss.reports.drawing import PALETTE, Dashes, Figure
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import distinguishing_names, name_systems, original_names, slug
from isogloss.reports.parts import Part, summary_parts
from isogloss.reports.run_facts import ZERO_SHOT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 60
"""Bins of histograms."""

PAIRS = 3
"""Pairs of languages in one figure."""

HEIGHT = 1.05
"""Inches of a panel."""

STYLES: dict[str, tuple[str, Dashes]] = {
    "related": (PALETTE[2], "solid"),
    "unrelated": (PALETTE[3], (0, (4, 1.5))),
}
KIND = {"l2": "L2 distance", "cosine": "cosine distance"}
AUC = "AUC: how often a related pair lies nearer together than an unrelated one"
LAYER = {-1: "last layer", 0: "embeddings"}
GROUP = ["base", "layer", "distance"]


def with_stages(measurements: Measurements, rows: pd.DataFrame) -> pd.DataFrame:
    """Add ``base`` (the original encoder), ``stage`` and ``pair``, with stages in order.

    Adjusted encoders are shown on the pairs that they were adjusted to.
    """
    triples = zip(rows["first"], rows["second"], rows["encoder.pairs"], strict=True)
    is_shown = [
        not pairs or bool({f"{a}-{b}", f"{b}-{a}"} & set(pairs.split("+"))) for a, b, pairs in triples
    ]
    rows = name_systems(rows[is_shown], measurements.display_names)
    rows = rows.assign(
        base=rows["encoder.original"].map(original_names(rows, measurements.display_names)),
        pair=rows["first"] + "–" + rows["second"],
        size=rows["encoder.size"].map("{:,}".format, na_action="ignore"),
        tuned=rows["system"].mask(rows["reference"] == ZERO_SHOT, "fine-tuned"),
        last=rows["read.bitext"] != "",
    )
    same_stage = rows.groupby([*GROUP, "pair", "task", "way", "encoder.adjusted", "size"], dropna=False)[
        "encoder"
    ]
    stage_number = (same_stage.transform(lambda group: pd.factorize(group)[0]) + 1).astype(str)
    order = ["task", "last", "tuned", "encoder.adjusted", "encoder.size", "number"]
    rows = rows.assign(number=stage_number.where(stage_number != "1", "")).sort_values(order, kind="stable")
    return rows.assign(stage=_stages(rows))


def _stages(rows: pd.DataFrame) -> list[str]:
    """Return a name for each stage, such as "nli: adjusted + fine-tuned"."""
    adjustment_names = pd.Series("adjusted", rows.index).where(rows["encoder.adjusted"] != "", "")
    adjusted_rows = rows[adjustment_names != ""]
    stage_names = pd.Series(
        distinguishing_names(adjusted_rows, ["encoder.adjusted", "size", "number"])
        if len(adjusted_rows)
        else [],
        adjusted_rows.index,
    )
    if stage_names.nunique() > 1:
        adjustment_names[adjusted_rows.index] = "adjusted (" + stage_names + ")"
    words = [
        " + ".join(part for part in parts if part)
        for parts in zip(adjustment_names, rows["tuned"], strict=True)
    ]
    tasks = zip(rows["task"], words, strict=True)
    return [f"{task}: {stage}" if task else stage or "original" for task, stage in tasks]


def distance_figures(measurements: Measurements) -> list[Figure]:
    """Return histograms for each encoder, layer, distance and three pairs, a panel per stage."""
    bins = measurements.frame("word-distance-bins")
    means = measurements.frame("word-distance")
    if bins.empty:
        return []
    keys = [*GROUP, "stage", "pair"]
    bins = with_stages(measurements, bins).join(
        with_stages(measurements, means).groupby(keys)["auc"].mean(), on=keys
    )
    bins = bins.assign(part=pd.factorize(bins["pair"])[0] // PAIRS + 1)
    return [_histograms(rows) for _, rows in bins.groupby([*GROUP, "part"], sort=False)]


def _histograms(rows: pd.DataFrame) -> Figure:
    base, layer, kind, part = rows[[*GROUP, "part"]].iloc[0]
    edges = np.linspace(rows["low"].min(), rows["high"].max(), BINS + 1)
    rows = rows.drop(columns="part").assign(panel=rows["stage"] + " " + rows["pair"])
    aucs = rows.dropna(subset=["auc"]).drop_duplicates("panel")
    texts = [f"{panel} AUC {auc:.3f}" for panel, auc in zip(aucs["panel"], aucs["auc"], strict=True)]

    def draw(axis: "Axes", group: pd.DataFrame) -> None:
        shares = {name: pool_shares(group, name, edges) for name in STYLES}
        highest = max(float(share.max()) for share in shares.values()) or 1.0
        for name, (colour, dashes) in STYLES.items():
            axis.stairs(shares[name] / highest, edges, fill=True, color=colour, alpha=0.25)
            axis.stairs(shares[name] / highest, edges, color=colour, ls=dashes, lw=1.0, label=f"{name} words")
        axis.set(ylim=(0, 1.05), yticks=[])
        stage, pair, auc = group[["stage", "pair", "auc"]].iloc[0]
        drawing.panel_title(axis, stage)
        text = pair if pd.isna(auc) else f"{pair}\nAUC {auc:.3f}"
        axis.text(0.97, 0.93, text, transform=axis.transAxes, ha="right", va="top")

    words = {
        "name": slug("word-distance", base, layer, kind, part),
        "title": f"{KIND.get(kind, kind)} of words, {base}, {LAYER.get(layer, f'layer {layer}')}",
        "caption": (
            "Related words translate each other; unrelated ones are the same words, paired at random between "
            f"sentences that are no translations. {AUC} (0.5: not separated), mean over seeds."
        ),
        "alt": f"Histograms: {'; '.join(texts) or 'no AUC was recorded'}.",
    }
    labels = (f"{KIND.get(kind, kind)} of two words", "share of pairs (highest bin: 1)")
    return drawing.panel_figure(words, rows, draw, labels=labels, height=HEIGHT)


def pool_shares(rows: pd.DataFrame, name: str, edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the share of "related" or "unrelated" pairs between edges, as the mean over models.

    Each model's own bins are assumed to be evenly filled.
    """
    shares = []
    for _, group in rows.groupby(["run", "model"], sort=False):
        sorted_rows = group.sort_values("low")
        cumulative_sums = np.concatenate(([0.0], np.cumsum(sorted_rows[name])))
        edges_of = np.concatenate((sorted_rows["low"].iloc[:1], sorted_rows["high"]))
        shares.append(np.diff(np.interp(edges, edges_of, cumulative_sums)))
    return np.asarray(np.mean(shares, axis=0))


def distances_by_stage(measurements: Measurements) -> pd.DataFrame:
    """Return distances by stage, with the change of AUC relative to the original encoder."""
    rows = measurements.frame("word-distance")
    if rows.empty:
        return rows
    rows = with_stages(measurements, rows)
    keys = [*GROUP, "pair"]
    original = rows[rows["stage"] == "original"].groupby(keys)["auc"].mean().rename("before")
    return rows.join(original, on=keys).assign(change=lambda frame: frame["auc"] - frame["before"])


PARTS: Sequence[Part] = (
    ("word-distance", distance_figures),
    *summary_parts(__file__, {"word-distance-auc": {"frame": distances_by_stage}}),
)
"""Figures and tables of this feature, by the section of a report that shows them."""
