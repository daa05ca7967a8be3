"""Where words and sentences of two languages lie: distances of words, stage by stage, and maps of sentences.

"… Cross-Lingual Adjustment …", Figs 1 and 2: original, adjusted, fine-tuned, adjusted and fine-tuned, and
fine-tuned in continual mode. X-Mixup, Figs 1 and 4.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isogloss.reports import drawing
from isogloss.reports.drawing import MARK, MARKERS, MOST_PANELS, PALETTE, Figure, Words, capped
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import count, encoder_names, joined, name_systems, percent, slug, told_by
from isogloss.reports.tables import Summary, heads, numbers, percents

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

PLAIN, CONTINUAL = "source-only", "continual"
BINS, PAIRS, HEIGHT = 60, 4, 1.05
"""Bins that histograms are drawn with, pairs of languages in one figure, inches of a panel."""

STYLES: dict[str, tuple[str, Any]] = {
    "related": (PALETTE[2], "solid"),
    "unrelated": (PALETTE[3], (0, (4, 1.5))),
}
KIND = {"l2": "L2 distance", "cosine": "cosine distance"}
ONE = ["base", "layer", "distance"]


def staged(m: Measurements, rows: pd.DataFrame) -> pd.DataFrame:
    """Add ``base`` (the encoder as it was), ``stage`` and ``pair``, stages in order.

    An adjusted encoder counts for the pairs it was adjusted to: what that does to others is left out.
    """
    both = zip(rows["first"], rows["second"], rows["encoder.pairs"], strict=True)
    own = [not pairs or bool({f"{a}-{b}", f"{b}-{a}"} & {*pairs.split("+")}) for a, b, pairs in both]
    rows = name_systems(rows[own], m.labels)
    adjusted = rows["encoder.adjusted"] != ""
    bare = {"encoder": rows["encoder.original"], "encoder.run": rows["encoder.run"].mask(adjusted, "")}
    bases = encoder_names(
        rows.assign(**bare, **{"encoder.adjusted": ""}).sort_values("encoder.run"), m.labels
    )
    rows = rows.assign(base=rows["encoder.original"].map(bases), pair=rows["first"] + "–" + rows["second"])
    rows = rows.assign(size=rows["encoder.size"].map("{:,}".format, na_action="ignore"), tuned=rows["system"])
    alike = rows.groupby([*ONE, "pair", "task", "way", "encoder.adjusted", "size"], dropna=False)["encoder"]
    number = (alike.transform(lambda same: pd.factorize(same)[0]) + 1).astype(str)
    rows = rows.assign(
        number=number.where(number != "1", ""),
        tuned=rows["tuned"].mask(rows["method"] == PLAIN, "fine-tuned"),
    )
    order = rows.assign(last=rows["method"] == CONTINUAL)
    order = order.sort_values(
        ["task", "last", "tuned", "encoder.adjusted", "encoder.size", "number"], kind="stable"
    )
    return rows.loc[order.index].assign(stage=_stages(rows.loc[order.index]))


def _stages(rows: pd.DataFrame) -> list[str]:
    """Say each stage in words, as in "nli: adjusted + fine-tuned"."""
    made = rows["encoder.adjusted"] != ""
    told = pd.Series("", rows.index)
    if made.any():
        told[made] = told_by(rows[made], ["encoder.adjusted", "size", "number"])
    several = told[made].nunique() > 1
    words = []
    for task, tuned, adjusted, how in zip(rows["task"], rows["tuned"], made, told, strict=True):
        parts = [
            *([f"adjusted ({how})" if several else "adjusted"] if adjusted else []),
            *filter(None, [tuned]),
        ]
        words.append(f"{task}: {' + '.join(parts)}" if task else " + ".join(parts) or "original")
    return words


def distance_figures(m: Measurements) -> list[Figure]:
    """Draw histograms for each encoder, layer and distance: stages are rows, pairs of languages columns."""
    bins, means = m.frame("word-distance-bins"), m.frame("word-distance")
    if bins.empty:
        return []
    bins, means = staged(m, bins), staged(m, means)
    found = []
    for key, group in bins.groupby(ONE, sort=False):
        pairs = list(group["pair"].drop_duplicates())
        for first in range(0, len(pairs), PAIRS):
            part = group[group["pair"].isin(pairs[first : first + PAIRS])]
            same = means[(means[ONE] == list(key)).all(axis=1) & means["pair"].isin(part["pair"])]
            found.append(_histograms(part, same.groupby(["stage", "pair"], sort=False)["auc"].mean(), first))
    return found


def _histograms(rows: pd.DataFrame, aucs: pd.Series, first: int) -> Figure:
    stages, pairs = list(rows["stage"].drop_duplicates()), list(rows["pair"].drop_duplicates())
    edges = np.linspace(rows["low"].min(), rows["high"].max(), BINS + 1)
    base, layer, kind = rows[ONE].iloc[0]

    def paint() -> "Canvas":
        canvas, axes = drawing.grid(len(stages[:MOST_PANELS]), len(pairs), height=HEIGHT)
        groups = dict(list(rows.groupby(["stage", "pair"])))
        for line, stage in zip(axes, stages, strict=False):
            for axis, pair in zip(line, pairs, strict=True):
                axis.set_visible((stage, pair) in groups)
                if (stage, pair) in groups:
                    _draw_histogram(axis, groups[stage, pair], edges)
                    drawing.head(axis, stage)
                    auc = f"\nAUC {aucs[stage, pair]:.3f}" if (stage, pair) in aucs else ""
                    axis.text(0.97, 0.93, pair + auc, transform=axis.transAxes, ha="right", va="top")
        for column in zip(*axes, strict=True):
            [axis for axis in column if axis.get_visible()][-1].tick_params(labelbottom=True)
        drawing.legend(canvas, [axis for line in axes for axis in line])
        drawing.axis_labels(canvas, f"{KIND.get(kind, kind)} of two words", "share of pairs (highest bin: 1)")
        return canvas

    words = _distance_words((base, layer, kind), aucs, first)
    return drawing.drawn(capped(words, len(stages)), rows, paint)


def _distance_words(key: tuple[str, int, str], aucs: pd.Series, first: int) -> Words:
    base, layer, kind = key
    told = [f"{' '.join(key)} AUC {value:.3f}" for key, value in aucs.items()]
    return Words(
        name=slug("word-distance", base, layer, kind, first // PAIRS + 1),
        title=f"{KIND.get(kind, kind)} of related and unrelated words, {base}, {layer_name(layer)}",
        caption=(
            "Related words translate each other (aligned); unrelated ones are the same words, paired at "
            "random between sentences that are no translations. AUC: how often a related pair lies nearer "
            "together than an unrelated one; 1 is apart, 0.5 not told apart. Mean over seeds."
        ),
        alt=f"Histograms: {'; '.join(told) or 'no AUC was recorded'}.",
    )


def _draw_histogram(axis: "Axes", rows: pd.DataFrame, edges: "np.ndarray[Any, Any]") -> None:
    found = {name: pooled(rows, name, edges) for name in STYLES}
    highest = max(float(shares.max()) for shares in found.values()) or 1.0
    for name, (colour, dashes) in STYLES.items():
        axis.stairs(found[name] / highest, edges, fill=True, color=colour, alpha=0.25)
        axis.stairs(found[name] / highest, edges, color=colour, ls=dashes, lw=1.0, label=f"{name} words")
    axis.set_ylim(0, 1.05)
    axis.set_yticks([])


def pooled(rows: pd.DataFrame, name: str, edges: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Return the share of "related" or "unrelated" pairs between edges, as the mean over models.

    Each model's own bins are taken to be evenly filled.
    """
    return drawing.drawn(capped(_map_words(about, maps), len(maps)), rows, paint)


def _map_words(about: list[str], maps: list[tuple[str, pd.DataFrame]]) -> Words:
    shares = []
    for _, own in rows.groupby(["run", "model"], sort=False):
        ordered = own.sort_values("low")
        below = np.concatenate(([0.0], np.cumsum(ordered[name])))
        places = np.concatenate((ordered["low"].iloc[:1], ordered["high"]))
        shares.append(np.diff(np.interp(edges, places, below)))
    return np.asarray(np.mean(shares, axis=0))


def layer_name(layer: int) -> str:
    """Name a layer: the last, the embeddings, or by number."""
    return {-1: "last layer", 0: "embeddings"}.get(layer, f"layer {layer}")


def _distances(m: Measurements) -> pd.DataFrame:
    """Return distances by stage, with the change of the AUC against the original encoder's."""
    rows = m.frame("word-distance")
    if rows.empty:
        return rows
    rows = staged(m, rows)
    keys = [*ONE, "pair"]
    original = rows[rows["stage"] == "original"].groupby(keys)["auc"].mean().rename("before")
    rows = rows.join(original, on=keys)
    return rows.assign(change=rows["auc"] - rows["before"])


AUC_TABLE = Summary(
    frame=_distances,
    name="word-distance-auc",
    title="Distances of related and unrelated words",
    caption=(
        "AUC: how often a related pair of words lies nearer together than an unrelated one; its change "
        "against the original encoder; mean distances. Mean ± standard deviation over models. Adjusted "
        "encoders stand with the pair they were adjusted to."
    ),
    by=heads("base", "distance", "layer", "pair", "stage"),
    keep=("distance", "pair", "stage"),
    values={
        **numbers(3, AUC="auc", change="change"),
        **numbers(related="related_mean", unrelated="unrelated_mean"),
    },
    over="models",
)

MAP_TABLE = Summary(
    frame="representation-map",
    title="How much the language moves a sentence",
    caption=(
        "Between: share of the variance of sentence states that lies between the languages' centroids, in "
        "percent, over all dimensions; 0 where translations do not differ on average. First, second: share "
        "of the variance along the two axes of the map. Mean ± standard deviation over seeds."
    ),
    by=heads("corpus", "task", "name", "target", "layer", "sentences"),
    keep=("name", "layer"),
    values=percents(between="between", first="explained_x", second="explained_y"),
    choose=lambda rows: rows.dropna(subset=["between"]).drop_duplicates(["run", "model", "layer"]),
    apart=("encoder", "way", "source"),
)


def map_figures(m: Measurements) -> list[Figure]:
    """Draw, for each encoder and task, a map of the encoder and one of each method's first model."""
    rows = m.frame("representation-map")
    if rows.empty:
        return []
    rows = name_systems(rows, m.labels)
    first = rows["seed"].fillna(0) == rows.groupby(["corpus", "task", "encoder", "way", "target"])[
        "seed"
    ].transform("min").fillna(0)
    rows = rows[first.to_numpy()]
    models = rows[rows["way"] != ""]
    keys = ["corpus", "task", "encoder", "encoder.label"]
    found = []
    for (corpus, task, encoder, label), own in (models if len(models) else rows).groupby(keys, sort=False):
        bare = rows[(rows["way"] == "") & (rows["encoder"] == encoder) & (rows["corpus"] == corpus)]
        found.append(_maps([corpus, task, label], pd.concat([bare, own[own["way"] != ""]])))
    return found


def _maps(about: list[str], rows: pd.DataFrame) -> Figure:
    system = rows["system"].mask(rows["way"] == "", "before fine-tuning")
    rows = rows.assign(panel=told_by(rows.assign(system=system), ["system", "target", "layer"]))
    maps = list(rows.groupby("panel", sort=False))
    codes = list(rows["language"].drop_duplicates())
    colour, far = drawing.colours(codes), 1.05 * rows[["x", "y"]].abs().max().max()

    def paint() -> "Canvas":
        canvas, axes = drawing.panels(len(maps[:MOST_PANELS]), height=2.1, labels=codes)
        for axis, (name, own) in zip(axes, maps, strict=False):
            for (what, code), marks in own.groupby(["what", "language"], sort=False):
                large = {"s": 60, "edgecolors": MARK, "zorder": 3, "label": code}
                look = large if what == "centroid" else {"s": 7, "alpha": 0.4, "linewidth": 0}
                marker = MARKERS[codes.index(code) % len(MARKERS)]
                axis.scatter(marks["x"], marks["y"], color=colour[code], marker=marker, **look)
            drawing.head(axis, name)
            axis.set(xlim=(-far, far), ylim=(-far, far))
        drawing.legend(canvas, axes)
        drawing.axis_labels(canvas, "first principal component", "second")
        return canvas

    shares = [
        f"{name} {percent(own['between'].dropna().iloc[0])}"
        for name, own in maps
        if own["between"].notna().any()
    ]
    return Words(
        name=slug("map", *about),
        title=f"Map of sentences: {' '.join(filter(None, about))}",
        caption=(
            "Mean-pooled states of parallel sentences on their first two principal components, one mark for "
            "a sentence, the large ones the languages' centroids; the first seed of each method. All maps "
            "have one scale, so how far centroids lie apart compares; directions, found for each map, do not."
        ),
        alt=(
            f"Scatter plots ({count(len(maps), 'map')}) of sentences by language. Percent of the variance "
            f"between languages: {joined(shares) or 'not recorded'}."
        ),
    )
