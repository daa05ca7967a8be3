"""Distances of related and unrelated words, stage by stage: histograms and the AUC of the separation.

Paper: "… Cross-Lingual Adjustment …", Figs 1 and 2.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import TYPE_CHECKING

from isogloss.core.records import Row
from isogloss.metrics.spread import spread
from isogloss.oldreports.drawing import PALETTE, Figure, Words, axis_labels, drawn, grid, head, legend
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.rows import DistanceBin, Distances
from isogloss.oldreports.stages import Stage, by_stage, origin
from isogloss.oldreports.tables import Cell, Table, cells
from isogloss.oldreports.words import joined, slug

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

BINS = 60
"""Bins all histograms of a figure are drawn with."""

COLUMNS = 4
"""Pairs of languages in one figure; more go on in a next one."""

HEIGHT = 1.05
"""Inches of a panel: three tasks make eleven lines of them."""

STYLES = {"related": (PALETTE[2], "solid"), "unrelated": (PALETTE[3], (0, (4, 1.5)))}

KIND = {"l2": "L2 distance", "cosine": "cosine distance"}

Key = tuple[str, int, str]


def _key(row: Distances | DistanceBin) -> Key:
    return origin(row.encoder).base, row.layer, row.distance


def distance_figures(bins: Sequence[DistanceBin], means: Sequence[Distances]) -> list[Figure]:
    """Draw a figure for each encoder, layer and distance: stages are its rows, pairs of languages columns."""
    found = []
    for key, group in grouped(bins, _key).items():
        pairs = list(dict.fromkeys((row.first, row.second) for row in group))
        for first in range(0, len(pairs), COLUMNS):
            chosen = pairs[first : first + COLUMNS]
            part = [row for row in group if (row.first, row.second) in chosen]
            same = [row for row in means if _key(row) == key and (row.first, row.second) in chosen]
            found.append(_figure(key, part, same, first // COLUMNS))
    return found


def _figure(key: Key, bins: Sequence[DistanceBin], means: Sequence[Distances], number: int) -> Figure:
    stages, aucs = by_stage(bins), by_stage(means)
    pairs = [f"{first}–{second}" for first, second in dict.fromkeys((row.first, row.second) for row in bins)]

    def paint() -> "Canvas":
        canvas, axes = grid(len(stages), len(pairs), height=HEIGHT)
        edges = _edges(bins)
        for line, (stage, there) in zip(axes, stages.items(), strict=True):
            for axis, pair in zip(line, pairs, strict=True):
                axis.set_visible(pair in there)
                if pair in there:
                    _draw(axis, there[pair], edges)
                    head(axis, stage.label)
                    found = _auc(aucs.get(stage, {}).get(pair, []))
                    axis.text(0.97, 0.93, f"{pair}\n{found}", transform=axis.transAxes, ha="right", va="top")
                    axis.set_yticks([])
        for column in zip(*axes, strict=True):
            lowest = [axis for axis in column if axis.get_visible()][-1]
            lowest.tick_params(labelbottom=True)
        legend(canvas, [axis for line in axes for axis in line])
        axis_labels(
            canvas,
            f"{KIND.get(key[2], key[2])} of two words",
            "share of pairs (highest bin of each panel: 1)",
        )
        return canvas

    return drawn(_words(key, stages, aucs, number), [asdict(row) for row in bins], paint)


def _draw(axis: "Axes", rows: Sequence[DistanceBin], edges: "npt.NDArray[np.float64]") -> None:
    found = {name: pooled(rows, name, edges) for name in STYLES}
    highest = max(float(shares.max()) for shares in found.values())
    for name, (colour, dashes) in STYLES.items():
        shares = found[name] / (highest or 1.0)
        axis.stairs(shares, edges, fill=True, color=colour, alpha=0.25)
        axis.stairs(shares, edges, color=colour, linestyle=dashes, linewidth=1.0, label=f"{name} words")
    axis.set_ylim(0, 1.05)


def pooled(
    rows: Sequence[DistanceBin], name: str, edges: "npt.NDArray[np.float64]"
) -> "npt.NDArray[np.float64]":
    """Return the share of "related" or "unrelated" pairs between edges, as the mean over models.

    Each model's own bins are taken to be evenly filled.
    """
    import numpy as np

    shares = []
    for own in grouped(rows, lambda row: (row.encoder, row.seed)).values():
        ordered = sorted(own, key=lambda row: row.low)
        below = np.concatenate(([0.0], np.cumsum([getattr(row, name) for row in ordered])))
        shares.append(np.diff(np.interp(edges, [ordered[0].low, *(row.high for row in ordered)], below)))
    return np.mean(shares, axis=0)  # type: ignore[no-any-return]


def _edges(rows: Sequence[DistanceBin]) -> "npt.NDArray[np.float64]":
    import numpy as np

    return np.linspace(min(row.low for row in rows), max(row.high for row in rows), BINS + 1)


def _auc(rows: Sequence[Distances]) -> str:
    return f"AUC {fmean(row.auc for row in rows):.3f}" if rows else ""


def _words(
    key: Key, stages: Iterable[Stage], aucs: dict[Stage, dict[str, list[Distances]]], number: int
) -> Words:
    base, layer, kind = key
    several = any(stage.number > 1 for stage in stages)
    found = [
        f"{stage.label} {joined(f'{pair} {_auc(rows)}' for pair, rows in there.items())}"
        for stage, there in aucs.items()
    ]
    return Words(
        name=slug("word-distance", base, str(layer), kind, str(number + 1)),
        title=f"{KIND.get(kind, kind)} of related and unrelated words, {base}, {layer_name(layer)}",
        caption=(
            "Related words translate each other (aligned); unrelated ones are the same words, paired at "
            "random between sentences that are no translations. AUC: how often a related pair lies nearer "
            "together than an unrelated one; 1 is apart, 0.5 not told apart. Mean over seeds."
            + (" A number tells several adjustments to one pair apart, in the table's order." * several)
        ),
        alt=f"Histograms: {'; '.join(found) or 'no AUC was recorded'}.",
    )


def layer_name(layer: int) -> str:
    """Name a layer: the last, the embeddings, or by number."""
    return {-1: "last layer", 0: "embeddings"}.get(layer, f"layer {layer}")


def distance_tables(rows: Sequence[Distances]) -> list[Table]:
    """Return AUC by stage and pair of languages for each encoder, layer and distance, and every number."""
    tables = [_auc_table(key, group) for key, group in grouped(rows, _key).items()]
    return [*tables, _every_distance(rows)] if tables else []


def _auc_table(key: Key, rows: Sequence[Distances]) -> Table:
    base, layer, kind = key
    stages = by_stage(rows)
    pairs = list(dict.fromkeys(pair for there in stages.values() for pair in there))
    original = next((there for stage, there in stages.items() if stage.original), {})
    lines: list[tuple[Cell, ...]] = []
    data: list[Row] = []
    for stage, there in stages.items():
        lines.append((Cell(stage.label), *(_change_cell(there, original, pair, stage) for pair in pairs)))
        for pair, group in there.items():
            about: Row = {"encoder": base, "layer": layer, "distance": kind, "stage": stage.label}
            numbers: Row = {"auc": _mean(group), "change": _change(there, original, pair)}
            data.append({**about, "pair": pair, **numbers, "models": len(group)})
    return Table(
        name=slug("word-distance-auc", base, str(layer), kind),
        title=f"AUC of related against unrelated words, {KIND.get(kind, kind)}, {base}, {layer_name(layer)}",
        caption=(
            "How often a related pair of words lies nearer together than an unrelated one, mean ± standard "
            "deviation over models; in brackets the change against the original encoder. Adjusted encoders "
            "stand in the column of the pair they were adjusted to."
        ),
        header=cells("stage", *pairs),
        align="l" + "r" * len(pairs),
        rows=tuple(lines),
        data=data,
    )


def _mean(rows: Sequence[Distances]) -> float:
    return fmean(row.auc for row in rows)


def _change(
    there: dict[str, list[Distances]], original: dict[str, list[Distances]], pair: str
) -> float | None:
    return _mean(there[pair]) - _mean(original[pair]) if pair in original else None


def _change_cell(
    there: dict[str, list[Distances]], original: dict[str, list[Distances]], pair: str, stage: Stage
) -> Cell:
    if pair not in there:
        return Cell("–")
    over = spread([row.auc for row in there[pair]])
    text = f"{over.mean:.3f} ± {over.std:.3f}" if over.n > 1 else f"{over.mean:.3f}"
    change = None if stage.original else _change(there, original, pair)
    return Cell(text if change is None else f"{text} ({change:+.3f})".replace("-", "−"))


_NAMES = ("encoder", "task", "method", "first", "second", "layer", "distance")


def _every_distance(rows: Sequence[Distances]) -> Table:
    shown = tuple(
        cells(
            *(str(getattr(row, name)) for name in _NAMES),
            "" if row.seed is None else str(row.seed),
            *(f"{number:.4g}" for number in (row.related_mean, row.unrelated_mean, row.auc)),
            str(row.related_pairs),
        )
        for row in rows
    )
    return Table(
        name="every-word-distance",
        title=f"Every measurement of word distances ({len(rows)})",
        caption="One line for each encoder or model, pair of languages, layer and distance.",
        header=cells(*_NAMES, "seed", "related mean", "unrelated mean", "AUC", "pairs"),
        align="lllllrlrrrrr",
        rows=shown,
        data=[asdict(row) for row in rows],
        folded=True,
    )
