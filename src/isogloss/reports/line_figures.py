"""Figures of one frame each, as values: lines over steps, epochs, layers, ratios, sizes; seeds' spread."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from isogloss.reports import drawing
from isogloss.reports.comparison import PLACE, best_split
from isogloss.reports.drawing import MOST_PANELS, SOURCE, TARGET, Figure, Lines, Words
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import count, joined, language, name_systems, slug, told_by
from isogloss.reports.summaries import COMPARABLE, spreads, with_role

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

MOST_TOLD = 12
"""Lines whose ends the text for those who cannot see a figure tells."""

PLAIN = "source-only"
TEST = ("corpus", "treebank", "inputs", "task", "encoder.label", "split", "metric")


@dataclass(frozen=True, kw_only=True)
class LineFigure:
    """A figure of lines of one frame, one for each value of ``apart``; seeds are averaged."""

    frame: str
    name: str
    title: str
    caption: str
    panels: tuple[str, ...]
    """Columns that name the panels, by those that differ."""
    lines: Lines
    choose: Callable[[Measurements, pd.DataFrame], pd.DataFrame]
    """Gives the rows that are drawn, with columns added."""
    apart: tuple[str, ...] = ()

    def figures(self, m: Measurements) -> list[Figure]:
        """Draw it; nothing where nothing was measured."""
        rows = m.frame(self.frame)
        rows = self.choose(m, rows) if len(rows) else rows
        if rows.empty:
            return []
        rows = name_systems(rows, m.labels)
        groups = rows.groupby(list(self.apart), sort=False, dropna=False) if self.apart else [((), rows)]
        return [figure for key, own in groups for figure in self._figure(key, own)]

    def _figure(self, key: tuple[object, ...], rows: pd.DataFrame) -> list[Figure]:
        about = [str(part) for part in key if part]
        rows = rows.assign(panel=told_by(rows, self.panels))
        words = Words(
            name=slug(self.name, *about),
            title=", ".join([self.title, *about]),
            caption=self.caption,
            alt=f"Line plots; the last point of each line: {self._ends(rows)}.",
        )
        return drawing.line_figure(words, rows, self.lines)

    def _ends(self, rows: pd.DataFrame) -> str:
        how = self.lines
        keys = list(dict.fromkeys(filter(None, ["panel", how.color, how.dash])))
        means = rows.groupby([*keys, how.x], sort=False)[how.y].mean().reset_index()
        last = means.sort_values(how.x, kind="stable").drop_duplicates(keys, keep="last").sort_index()
        names = last[keys].astype(str).itertuples(index=False, name=None)
        values = (how.scale * last[how.y]).map("{:.3g}".format)
        told = [" ".join([*filter(None, name), value]) for name, value in zip(names, values, strict=True)]
        more = [f"{count(len(told) - MOST_TOLD, 'line')} more"] if len(told) > MOST_TOLD else []
        return joined([*told[:MOST_TOLD], *more])


def _by_layer(_: Measurements, rows: pd.DataFrame) -> pd.DataFrame:
    """Keep one similarity, and draw what chance finds beside it; nothing for a single layer."""
    best = rows[rows["centred"].astype(bool) & (rows["similarity"] == "cosine")]
    rows = best if len(best) else rows[rows["similarity"] == rows["similarity"].iloc[0]]
    place = rows["layer"].mask(rows["layer"] < 0, rows["layer"].max() + 1)
    both = (rows["accuracy_forward"] + rows["accuracy_backward"]) / 2
    rows = rows.assign(pair=rows["first"] + "–" + rows["second"], place=place, accuracy=both)
    chance = rows.assign(pair="chance", accuracy=rows["chance"])
    return pd.concat([rows, chance], ignore_index=True) if place.nunique() > 1 else rows[:0]


def _pretraining(_: Measurements, rows: pd.DataFrame) -> pd.DataFrame:
    rows = rows[(rows["kind"] == "encoder") & (rows["encoder.adjusted"] == "")]
    return rows.assign(whose=rows["language"].fillna("").replace("", "all languages"))


def _sweep(_: Measurements, rows: pd.DataFrame) -> pd.DataFrame:
    """Mark what was trained with a line of its own; nothing where no ratio was changed."""
    rows = rows.assign(line="layer " + rows["layer"].astype(str))
    keys = ["corpus", "inputs", "inputs.translator", "task", "encoder", "split", "metric"]
    rows = rows[rows.groupby(keys, dropna=False)["ratio"].transform("nunique") > 1]
    trained = rows[rows["trained"].astype(bool)]
    return pd.concat([rows, trained.assign(line="as trained")], ignore_index=True)


def bitext_sizes(m: Measurements, rows: pd.DataFrame) -> pd.DataFrame:
    """Return scores by translations of adjustments in several sizes, and beside them the original's.

    An adjustment to all translations has the number that it read.
    """
    rows = best_split(rows[rows["main"].astype(bool) & (rows["method"] == PLAIN)])
    read = m.frame("bitext-read").groupby("run")["translations"].max()
    sizes = rows["encoder.size"].astype(float).fillna(rows["encoder.run"].map(read))
    codes = [
        "" if code in {one for pair in pairs.split("+") for one in pair.split("-")} else "not adjusted to"
        for code, pairs in zip(rows["language"], rows["encoder.pairs"], strict=True)
    ]
    test = [*PLACE, "way", "inputs", "inputs.translator", "language"]
    original = rows[rows["encoder.adjusted"] == ""].groupby(["encoder", *test], dropna=False)["score"].mean()
    fields = [name for name in rows if name.startswith("encoder.adjusted.")]
    series = ["encoder.original", "encoder.adjusted", "encoder.pairs", "encoder.depth", *fields]
    rows = rows.assign(translations=sizes, line=codes)[(rows["encoder.adjusted"] != "") & sizes.notna()]
    if rows.empty:
        return rows
    found = [
        own.assign(how=", ".join(str(own[name].iloc[0]) for name in fields))
        for _, own in rows.groupby(series, sort=False, dropna=False)
        if own["translations"].nunique() > 1
    ]
    adjusted = pd.concat(found) if found else rows[:0]
    known = (
        adjusted.drop(columns="score").join(original, on=["encoder.original", *test]).dropna(subset=["score"])
    )
    return pd.concat([adjusted, known.assign(line="original encoder")], ignore_index=True)


LINE_FIGURES = (
    LineFigure(
        frame="retrieval",
        name="retrieval",
        title="Translation retrieval by layer",
        caption=(
            "How often the nearest sentence of the other language (cosine, each language centred, where that "
            "was measured) is the translation, mean of both directions and over seeds, for each layer; a "
            "last layer whose number is not known stands one to the right."
        ),
        panels=("corpus", "name", "task", "source", "target"),
        lines=Lines(
            x="place", y="accuracy", panel="panel", color="pair", labels=("layer", "accuracy, percent"),
            scale=100, height=1.9, whole=True, marker="o",
        ),
        choose=_by_layer,
    ),
    LineFigure(
        frame="training-steps",
        name="pretraining",
        title="Pretraining",
        caption="Loss (nats per masked subword) by step, mean over seeds; band: one standard deviation.",
        panels=("encoder.label",),
        lines=Lines(
            x="step", y="loss", panel="panel", color="whose", band=True, labels=("step", "loss"), height=1.9,
            marker=".",
        ),
        choose=_pretraining,
    ),
    LineFigure(
        frame="perplexity",
        name="perplexity",
        title="Perplexity on held-out text",
        caption=(
            "Perplexity of masked subwords (logarithmic) by epoch, a line for each encoder, mean over seeds; "
            f"band: one standard deviation. {COMPARABLE}"
        ),
        panels=("whose",),
        lines=Lines(
            x="epoch", y="score", panel="panel", color="encoder.label", band=True,
            labels=("epoch", "perplexity"), whole=True, marker=".", log="y",
        ),
        choose=lambda _, rows: rows.assign(whose=rows["language"].map(language)),
    ),
    LineFigure(
        frame="training-steps",
        name="adjusting",
        title="Adjusting",
        caption="Loss by step (logarithmic), one line per encoder; different sums are no better or worse.",
        panels=("encoder.adjusted",),
        lines=Lines(
            x="step", y="loss", panel="panel", color="encoder.label", labels=("step", "loss"), height=2.1,
            marker=".", log="x",
        ),
        choose=lambda _, rows: rows[(rows["kind"] == "encoder") & (rows["encoder.adjusted"] != "")],
        apart=("encoder.adjusted",),
    ),
    LineFigure(
        frame="epochs",
        name="fine-tuning",
        title="Fine-tuning",
        caption=(
            "Score on the dev set of each training language by epoch, mean over seeds; band: one standard "
            "deviation. The epoch that each run kept is in the CSV (chosen)."
        ),
        panels=("corpus", "task", "encoder.label", "source", "target", "metric"),
        lines=Lines(
            x="epoch", y="score", panel="panel", color="system", dash="whose", band=True,
            labels=("epoch", "dev score, percent"), scale=100, height=1.2, whole=True, marker=".",
        ),
        choose=lambda _, rows: with_role(rows).assign(whose=lambda r: r["role"].replace("source", "")),
    ),
    LineFigure(
        frame="mixup-sweep",
        name="mixup-sweep",
        title="Mixing at inference",
        caption=(
            "Score of trained models whose largest mixing ratio λ₀, or layer, is changed at inference, mean "
            "over seeds; nothing is trained again. At 0 nothing is mixed."
        ),
        panels=("system", "source", "target", "language"),
        lines=Lines(
            x="ratio", y="score", panel="panel", color="line", labels=("λ₀", "score, percent"), scale=100,
            marker="o",
        ),
        choose=_sweep,
        apart=TEST,
    ),
    LineFigure(
        frame="scores",
        name="bitext-size",
        title="Scores by the size of the bitext",
        caption=(
            "Source-only models on adjusted encoders by the number of translations (logarithmic); mean over "
            "seeds, the band one standard deviation. Solid: languages it was adjusted to."
        ),
        panels=("corpus", "treebank", "task", "system", "source", "encoder.name", "encoder.languages", "how"),
        lines=Lines(
            x="translations", y="score", panel="panel", color="language", dash="line", band=True,
            labels=("translations", "score, percent"), scale=100, height=2.1, marker="o", log="x",
        ),
        choose=bitext_sizes,
        apart=("encoder.adjusted", "encoder.pairs"),
    ),
)  # fmt: skip


def seed_figures(m: Measurements) -> list[Figure]:
    """Draw the standard deviation over seeds of every system and language, source and target apart."""
    rows = spreads(m)
    if rows.empty:
        return []
    rows = name_systems(rows, m.labels)
    rows = rows.assign(panel=told_by(rows, ["corpus", "treebank", "task", "encoder.label", "metric"]))
    found, names = list(rows.groupby("panel", sort=False)), list(dict.fromkeys(rows["system"]))

    def paint() -> "Canvas":
        canvas, axes = drawing.panels(len(found[:MOST_PANELS]), height=0.35 + 0.4 * len(names))
        canvas.subplots_adjust(left=1.6 / canvas.get_figwidth())
        for axis, (name, own) in zip(axes, found, strict=False):
            for (system, role), marks in own.groupby(["system", "role"], sort=False):
                colour, marker, lower = (SOURCE, "o", -0.17) if role == "source" else (TARGET, "D", 0.17)
                values, height = 100 * marks["std"], names.index(system) + lower
                look: dict[str, Any] = {
                    "color": colour,
                    "marker": marker,
                    "alpha": 0.75,
                    "label": f"{role} language",
                }
                axis.scatter(values, [height] * len(values), s=14, **look)
                axis.vlines(values.mean(), height - 0.14, height + 0.14, color=colour)
            drawing.head(axis, name)
            axis.set_yticks(range(len(names)), names)
            axis.set_ylim(len(names) - 0.5, -0.5)
        drawing.legend(canvas, axes)
        drawing.axis_labels(canvas, "standard deviation over seeds, percentage points", "")
        return canvas

    return [drawing.drawn(drawing.capped(_seed_words(rows), len(found)), rows, paint)]


def _seed_words(rows: pd.DataFrame) -> Words:
    means = rows.groupby(["system", "role"], sort=False)["std"].mean()
    told = [f"{system}, {role} language {100 * value:.1f}" for (system, role), value in means.items()]
    return Words(
        name="seeds",
        title="Spread over seeds",
        caption=(
            f"Unbiased standard deviation over up to {count(int(rows['seeds'].max()), 'seed')} of the score, "
            "in percentage points. One mark per model and language: circles are the source language, "
            "diamonds the targets; the bar is the mean of each."
        ),
        alt=f"Dot plot. Mean standard deviation in points: {'; '.join(told)}.",
    )
