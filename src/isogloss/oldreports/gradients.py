"""Gradient conflict: the rows a report understands, and what they say over draws.

"On Negative Interference in Multilingual Models", Section 3.4. Noise lowers the cosine of two languages as it
lowers that of two batches of one language; divided by the geometric mean of the two languages' own cosines it
is corrected for that (Spearman 1904). Where these are themselves nearly 0 nothing but noise was measured.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from math import sqrt
from statistics import fmean
from typing import ClassVar

from isogloss.core.records import Row
from isogloss.metrics.spread import spread
from isogloss.oldreports.gather import Gathered, Run, run_rows
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.tables import Cell, Table, cells
from isogloss.oldreports.words import count, language, slug

ON_TEXT, ON_TASK = "gradient-conflict", "task-gradient-conflict"
DIAGNOSTICS = (ON_TEXT, ON_TASK)

NOISE = 0.05
"""Nothing is divided by the cosine of a language's own batches where it is below this."""

WHOLE = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Cosine of the gradients of two batches, of two languages or of one, in a part of a model."""

    diagnostic: ClassVar[str] = ON_TEXT
    corpus: str = ""
    task: str = ""
    encoder: str
    method: str = ""
    source: str = ""
    target: str = ""
    seed: int | None = None
    first: str
    second: str
    layer: int | None
    module: str
    draw: int
    batch: int
    cosine: float | None
    within: float | None = None
    overlap: float | None = None

    @property
    def about(self) -> tuple[str, ...]:
        """What was looked at: an encoder, or a fine-tuned model."""
        seed = "" if self.seed is None else f"seed {self.seed}"
        return self.encoder, self.corpus, self.task, self.method, self.source, self.target, seed

    @property
    def part(self) -> tuple[int | None, str]:
        """The part of the model."""
        return self.layer, self.module


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictStep:
    """The same while a model trains, after one step."""

    diagnostic: ClassVar[str] = "training"
    step: int
    first: str
    second: str
    layer: int | None
    module: str
    batch: int
    cosine: float | None
    within: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """Two languages' gradients in one part of one model, over draws."""

    first: str
    second: str
    layer: int | None
    module: str
    draws: int
    batch: int
    cosine: float
    std: float | None
    within: float | None
    """Geometric mean of both languages' own cosines."""
    corrected: float | None
    """The cosine divided by it."""


def conflicts_of(gathered: Gathered) -> tuple[list[Conflict], list[str]]:
    """Return the rows of both diagnostics, and what was left out and why."""
    found = [run_rows(run, Conflict) for run in gathered.runs if run.diagnostic in DIAGNOSTICS]
    rows = dict.fromkeys(row for rows, _ in found for row in rows)
    return list(rows), [note for _, notes in found for note in notes]


def steps_of(run: Run) -> tuple[list[ConflictStep], list[str]]:
    """Return a training's rows about conflict, and what was left out and why."""
    if run.record is None:
        return [], []
    kept = [row for row in run.record.rows if "cosine" in row]
    return run_rows(replace(run, record=replace(run.record, rows=kept)), ConflictStep)


def over_draws(rows: Iterable[Conflict]) -> list[Over]:
    """Return the numbers of one model over draws, for each pair of languages and part."""
    groups = grouped((row for row in rows if row.cosine is not None), lambda r: (r.first, r.second, r.part))
    values = {key: [row.cosine or 0.0 for row in group] for key, group in groups.items()}
    found = []
    for (first, second, part), group in groups.items():
        over = spread(values[first, second, part])
        own = [values.get((one, one, part), []) for one in (first, second)]
        within = own_cosine(*own) if first != second else None
        found.append(
            Over(
                first=first,
                second=second,
                layer=part[0],
                module=part[1],
                draws=over.n,
                batch=group[0].batch,
                cosine=over.mean,
                std=over.std if over.n > 1 else None,
                within=within,
                corrected=over.mean / within if within is not None else None,
            )
        )
    return found


def own_cosine(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return the geometric mean of two languages' own mean cosines; None where it is noise."""
    if not one or not other or min(fmean(one), fmean(other)) <= 0:
        return None
    within = sqrt(fmean(one) * fmean(other))
    return within if within >= NOISE else None


def conflict_tables(rows: Sequence[Conflict]) -> list[Table]:
    """Return two tables for each model: languages by languages, and parts by pairs of languages."""
    found = []
    for about, group in grouped(rows, lambda row: row.about).items():
        over = over_draws(group)
        found += [_languages_table(about, over), _parts_table(about, over)]
    return found


def title_of(about: Sequence[str]) -> str:
    """Name what was looked at."""
    encoder, *rest = about
    model = ", ".join(part for part in rest if part)
    return f"{model}, {encoder}" if model else encoder


def _languages_table(about: Sequence[str], over: Sequence[Over]) -> Table:
    whole = {
        frozenset((one.first, one.second)): one for one in over if (one.layer, one.module) == (None, WHOLE)
    }
    codes = list(dict.fromkeys(code for one in over for code in (one.first, one.second)))
    batch = next((one.batch for one in over), 0)
    return Table(
        name=slug("gradients", *about),
        title=f"Cosine of gradients, {title_of(about)}",
        caption=(
            f"Gradients of all parameters, each over a batch of {batch:,}; mean ± standard deviation over "
            f"draws. On the diagonal two batches of one language: what noise leaves of 1. In brackets, the "
            f"cosine of two languages divided by the geometric mean of their own: corrected for noise."
        ),
        header=cells("", *map(language, codes)),
        align="l" + "r" * len(codes),
        rows=tuple(
            (
                Cell(language(one)),
                *(
                    Cell(
                        _written(whole.get(frozenset((one, other)))),
                        "source" if one == other else "",
                    )
                    for other in codes
                ),
            )
            for one in codes
        ),
        data=[_with_about(about, one) for one in over],
    )


def _parts_table(about: Sequence[str], over: Sequence[Over]) -> Table:
    pairs = list(dict.fromkeys((one.first, one.second) for one in over))
    by_part = grouped(over, lambda one: (one.layer, one.module))
    shown = [
        (
            Cell("" if layer is None else str(layer)),
            Cell(module),
            *(
                Cell(_written(next((one for one in group if (one.first, one.second) == pair), None)))
                for pair in pairs
            ),
        )
        for (layer, module), group in sorted(by_part.items(), key=lambda one: (one[0][0] or 0, one[0][1]))
    ]
    return Table(
        name=slug("gradients-parts", *about),
        title=f"Cosine of gradients by layer and module, {title_of(about)}",
        caption="As above, for each part of the model; without a layer: those of all layers together.",
        header=cells("layer", "module", *(f"{first}–{second}" for first, second in pairs)),
        align="rl" + "r" * len(pairs),
        rows=tuple(shown),
        data=[_with_about(about, one) for one in over],
        folded=True,
    )


def _written(one: Over | None) -> str:
    if one is None:
        return "–"
    text = number(one.cosine) + (f" ± {one.std:.2f}" if one.std is not None else "")
    return text if one.corrected is None else f"{text} ({number(one.corrected)})"


def number(value: float) -> str:
    """Write a cosine."""
    return f"{value:.2f}".replace("-", "−")


def _with_about(about: Sequence[str], one: Over) -> Row:
    names = ("encoder", "corpus", "task", "method", "source", "target", "seed")
    return {**dict(zip(names, about, strict=True)), **asdict(one)}


def draws_told(rows: Sequence[Conflict]) -> str:
    """Say how many draws there are."""
    return count(len({row.draw for row in rows}), "draw")
