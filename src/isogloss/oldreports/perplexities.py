"""Perplexity on held-out text during pretraining: curves by epoch, a panel for each language, and a table."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from isogloss.oldreports.drawing import (
    Figure,
    Words,
    axis_labels,
    colours,
    drawn,
    head,
    legend,
    line_styles,
    panels,
    whole_numbers,
)
from isogloss.oldreports.gather import Run, run_rows
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.rows import Perplexity
from isogloss.oldreports.tables import Table, cells
from isogloss.oldreports.words import joined, language

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

_TITLE = "encoder "
"""What stands before the encoder's name in the title of a run that made it."""

COMPARABLE = "It is per subword: only encoders with one vocabulary can be compared."

Curve = tuple[str, list[Perplexity]]


def perplexity_figure(runs: Sequence[Run]) -> list[Figure]:
    """Draw the perplexity of each language by epoch, one line per encoder."""
    curves = _curves(runs)
    if not curves:
        return []
    by_language = grouped(curves, lambda curve: curve[1][-1].language)
    names = [name for name, _ in curves]
    colour, style = colours(names), line_styles(names)
    ends = [f"{language(rows[-1].language)} {rows[-1].score:.1f} for {name}" for name, rows in curves]
    words = Words(
        name="perplexity",
        title="Perplexity on held-out text",
        caption=f"Perplexity of masked subwords (logarithmic) by epoch, one line per encoder. {COMPARABLE}",
        alt=f"Line plots. Perplexity after the last epoch: {joined(ends)}.",
    )

    def paint() -> "Canvas":
        from matplotlib.ticker import LogFormatter

        canvas, axes = panels(len(by_language), labels=list(colour))
        for axis, (code, own) in zip(axes, by_language.items(), strict=True):
            for name, rows in own:
                epochs, scores = [row.epoch for row in rows], [row.score for row in rows]
                dot = "." * (len(rows) == 1)
                axis.plot(epochs, scores, style[name], marker=dot, color=colour[name], label=name)
            axis.set_yscale("log")
            axis.yaxis.set_major_formatter(LogFormatter())
            axis.yaxis.set_minor_formatter(LogFormatter())  # It writes as many as there is room for.
            head(axis, language(code))
        legend(canvas, axes)
        whole_numbers(axes)
        axis_labels(canvas, "epoch", "perplexity")
        return canvas

    return [drawn(words, [{"encoder": name, **asdict(row)} for name, rows in curves for row in rows], paint)]


def perplexity_table(runs: Sequence[Run]) -> list[Table]:
    """Return the perplexity after the last epoch and the lowest one, of each encoder and language."""
    curves = sorted(_curves(runs), key=lambda curve: curve[1][-1].language)
    lowest = [min(rows, key=lambda row: row.score) for _, rows in curves]
    table = Table(
        name="perplexity-by-language",
        title="Perplexity on held-out text",
        caption=(
            f"After the last epoch, whose weights are kept, and at its lowest: where that is much earlier, "
            f"the encoder learned its text by heart. {COMPARABLE}"
        ),
        header=cells("language", "encoder", "last", "after epoch", "lowest", "after epoch"),
        align="llrrrr",
        rows=tuple(
            cells(
                *(language(best.language), name, _number(rows[-1]), str(rows[-1].epoch)),
                *(_number(best), str(best.epoch)),
            )
            for (name, rows), best in zip(curves, lowest, strict=True)
        ),
        data=[
            {"encoder": name, **asdict(rows[-1]), "lowest": best.score, "lowest_epoch": best.epoch}
            for (name, rows), best in zip(curves, lowest, strict=True)
        ],
        folded=len(curves) > 12,
    )
    return [table] if curves else []


def _curves(runs: Sequence[Run]) -> list[Curve]:
    """Return each encoder's rows of each language, in the order of epochs."""
    found = []
    for run in runs:
        by_language = grouped(run_rows(run, Perplexity)[0], lambda row: row.language)
        found += [(run.title.removeprefix(_TITLE), list(rows)) for rows in by_language.values()]
    return found


def _number(row: Perplexity) -> str:
    return f"{row.score:,.2f}" if row.score < 1000 else f"{row.score:,.0f}"
