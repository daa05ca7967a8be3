"""Language gates in reports: which parameters languages keep, and whether they are the same."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from isogloss.core.errors import StorageError
from isogloss.data.result_files import ENDING, read_tensors
from isogloss.features.language_gates.gate_files import LOG_ALPHA, MASKS
from isogloss.reports.drawing import Lines
from isogloss.reports.line_figures import LineFigure
from isogloss.reports.measurements import Measurements
from isogloss.reports.parts import Part, summary_parts
from isogloss.reports.similarity import PART, UNIT, WHOLE, SimilarityColumn, show_layers, show_table

FARTHEST = 200
"""Gates shown of each language."""

MEASURES = (
    SimilarityColumn(
        "language-gates", "cosine", "Cosine of masks", "Cosine of two languages' gates π (log α)"
    ),
    SimilarityColumn(
        "language-gates", "correlation", "Correlation of masks", "Cosine of π less each mask's mean"
    ),
)


def _ranked_gates(measurements: Measurements, rows: pd.DataFrame) -> pd.DataFrame:
    """Return π of the gates that are farthest from 0 in a language, in their order, and each other one's."""
    folders = {run.id: run.folder for run in measurements.runs}
    gate_frames = [rows[:0]]
    for run, group in rows.groupby("run", sort=False):
        gates = _gates(folders[str(run)] / f"{MASKS}{ENDING}") if run in folders else {}
        for first_language, pi in gates.items():
            farthest = np.argsort(-np.abs(pi), kind="stable")[:FARTHEST]
            order = farthest[np.argsort(pi[farthest], kind="stable")]
            facts = group.iloc[:1].drop(columns=["mask", "draw", *PART]).assign(by=first_language)
            for language, other_gates in gates.items():
                values = pd.DataFrame({"rank": np.arange(1, len(order) + 1), "pi": other_gates[order]})
                gate_frames.append(facts.merge(values.assign(whose=language), how="cross"))
    return pd.concat(gate_frames)


def _gates(path: Path) -> dict[str, "np.ndarray[tuple[int], np.dtype[np.float64]]"]:
    """Return each language's π, the mean over draws. Empty if the file is missing or damaged."""
    try:
        tensors, _ = read_tensors(path)
    except StorageError:
        return {}
    draws: dict[str, dict[str, list[np.ndarray]]] = {}
    for name in sorted(tensors):
        kind, _, remaining_name = name.partition("/")
        if kind == LOG_ALPHA:
            language, draw, _ = remaining_name.split("/", 2)
            draws.setdefault(language, {}).setdefault(draw, []).append(tensors[name].ravel())
    language_gates = {
        language_code: [np.concatenate(parts) for parts in draw_parts.values()]
        for language_code, draw_parts in draws.items()
    }
    return {
        language_code: np.mean(vectors, axis=0, dtype=np.float64)
        for language_code, vectors in language_gates.items()
    }


GATES_FIGURE = LineFigure(
    section="similarity",
    frame="language-gates-kept",
    name="language-gates-ranked",
    title="Gates by one language's π",
    caption=(
        f"π (log α, mean over draws) of the {FARTHEST} gates farthest from 0 in a language, from its most "
        "pruned to its most kept, and π of the same gates in the other languages (paper 4, Fig. 4b)."
    ),
    panels=("by",),
    lines=Lines(x="rank", y="pi", color="whose", labels=("gate, by rank", "π")),
    choose=_ranked_gates,
    group_by=("name",),
)


def average_draws(rows: pd.DataFrame) -> pd.DataFrame:
    """Average the perplexities over the draws of masks, so that deviations are over seeds."""
    keys = [*UNIT, "language", "mask"]
    return rows.assign(perplexity=rows.groupby(keys)["perplexity"].transform("mean")).drop_duplicates(keys)


def _select_whole(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["layer"].isna() & (rows["module"] == WHOLE)]


FUNCTIONS = {
    "language-gates-perplexity": {"choose": average_draws},
    "language-gates-kept": {"choose": _select_whole},
    "language-gates-specific": {
        "choose": lambda rows: rows.assign(share=rows["gates"] / rows["of"])[rows["layer"].isna()]
    },
}
"""Functions that select the rows of tables."""

PARTS: Sequence[Part] = (
    *(("similarity", show_layers(measure).show) for measure in MEASURES),
    ("similarity", GATES_FIGURE.show),
    *(("similarity", show_table(measure).show) for measure in MEASURES),
    *summary_parts(__file__, FUNCTIONS),
)
"""Figures and tables of this feature, by the section of a report that shows them."""
