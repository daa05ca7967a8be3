"""Gates by language: the rows a report understands, and what they say over draws.

"On Negative Interference in Multilingual Models", Section 3.4, Fig. 4a: cosine of two languages' gate
parameters π. Two masks of one language are alike as far as their learning is not noise; what two languages
have in common is divided by that (Spearman 1904), as gradients are (``reports.gradients``).
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import ClassVar, TypeVar

from isogloss.core.records import Row
from isogloss.metrics.spread import spread
from isogloss.oldreports.gather import Gathered, rows_of
from isogloss.oldreports.gradients import WHOLE, number, own_cosine
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.tables import Cell, Table, cells
from isogloss.oldreports.words import language, percent, slug

GATES = "language-gates"
KINDS = ("attention", "feed-forward")

Part = tuple[int | None, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskLikeness:
    """How alike two masks are in a part of an encoder, of two languages or of one."""

    another_with: ClassVar[tuple[str, ...]] = ("perplexity", "expected", "prunes")

    diagnostic: ClassVar[str] = GATES
    encoder: str
    first: str
    first_draw: int
    second: str
    second_draw: int
    layer: int | None
    module: str
    gates: int
    cosine: float | None
    correlation: float | None = None
    open_cosine: float | None = None
    overlap: float | None = None
    only_first: int = 0
    only_second: int = 0

    @property
    def part(self) -> Part:
        """The part of the encoder."""
        return self.layer, self.module


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskPerplexity:
    """How well an encoder predicts a language, whole (mask "") or pruned by a language's mask."""

    another_with: ClassVar[tuple[str, ...]] = ("cosine", "expected", "prunes")

    diagnostic: ClassVar[str] = GATES
    encoder: str
    language: str
    mask: str
    draw: int | None
    perplexity: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskKept:
    """The share of the parameters that a mask keeps in a part of an encoder."""

    another_with: ClassVar[tuple[str, ...]] = ("cosine", "perplexity", "prunes")

    diagnostic: ClassVar[str] = GATES
    encoder: str
    mask: str
    draw: int
    layer: int | None
    module: str
    parameters: int
    kept: float
    expected: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecificGates:
    """How many gates every mask of one language keeps and every mask of another prunes."""

    another_with: ClassVar[tuple[str, ...]] = ("cosine", "perplexity", "expected")

    diagnostic: ClassVar[str] = GATES
    encoder: str
    keeps: str
    prunes: str
    layer: int | None
    module: str
    gates: int
    of: int
    parameters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Masks:
    """All rows about gates."""

    likeness: Sequence[MaskLikeness] = ()
    perplexities: Sequence[MaskPerplexity] = ()
    kept: Sequence[MaskKept] = ()
    specific: Sequence[SpecificGates] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """Two languages' masks in one part of an encoder, over draws; one language's own are the control."""

    first: str
    second: str
    layer: int | None
    module: str
    pairs: int
    """Pairs of masks."""
    cosine: float
    std: float | None
    corrected: float | None
    """The cosine divided by the geometric mean of both languages' own."""
    correlation: float | None
    correlation_corrected: float | None
    overlap: float | None


T = TypeVar("T")


def masks_of(gathered: Gathered) -> tuple[Masks, list[str]]:
    """Return the rows of the diagnostic, and what was left out and why."""
    notes: list[str] = []

    def read(kind: type[T]) -> list[T]:
        rows, left_out = rows_of(gathered, kind)
        notes.extend(left_out)
        return rows

    found = Masks(
        likeness=read(MaskLikeness),
        perplexities=read(MaskPerplexity),
        kept=read(MaskKept),
        specific=read(SpecificGates),
    )
    return found, notes


def alike_over_draws(rows: Iterable[MaskLikeness]) -> list[Alike]:
    """Return one encoder's numbers over draws, for each pair of languages and part."""
    groups = grouped((row for row in rows if row.cosine is not None), lambda r: (r.first, r.second, r.part))

    def values(name: str, first: str, second: str, part: Part) -> list[float]:
        own = [getattr(row, name) for row in groups.get((first, second, part), ())]
        return [value for value in own if value is not None]

    def corrected(name: str, first: str, second: str, part: Part) -> float | None:
        own = own_cosine(values(name, first, first, part), values(name, second, second, part))
        between = values(name, first, second, part)
        return fmean(between) / own if own is not None and between and first != second else None

    found = []
    for key, group in groups.items():
        over, (first, second, (layer, module)) = spread(values("cosine", *key)), key
        found.append(
            Alike(
                first=first,
                second=second,
                layer=layer,
                module=module,
                pairs=len(group),
                cosine=over.mean,
                std=over.std if over.n > 1 else None,
                corrected=corrected("cosine", *key),
                correlation=_mean(values("correlation", *key)),
                correlation_corrected=corrected("correlation", *key),
                overlap=_mean(values("overlap", *key)),
            )
        )
    return found


def gate_tables(masks: Masks) -> list[Table]:
    """Return the tables of each encoder: likeness of languages, by part, perplexities, specific gates."""
    found = []
    for encoder in dict.fromkeys(row.encoder for row in masks.perplexities):
        alike = alike_over_draws(row for row in masks.likeness if row.encoder == encoder)
        found += [_languages_table(encoder, alike, module) for module in (WHOLE, *KINDS)]
        found += [
            _parts_table(encoder, alike),
            _perplexity_table(encoder, masks),
            _specific_table(encoder, [row for row in masks.specific if row.encoder == encoder]),
        ]
    return [table for table in found if table.rows]


def _languages_table(encoder: str, alike: Sequence[Alike], module: str) -> Table:
    whole = {
        frozenset((one.first, one.second)): one for one in alike if (one.layer, one.module) == (None, module)
    }
    codes = list(dict.fromkeys(code for one in whole.values() for code in (one.first, one.second)))
    where = "all gates" if module == WHOLE else f"gates of {module}"
    return Table(
        name=slug("gates", module, encoder),
        title=f"Cosine of masks, {where}, {encoder}",
        caption=(
            "Cosine of the parameters π (log α) of two languages' gates, mean ± standard deviation over "
            "pairs of draws. On the diagonal two masks of one language: what noise leaves of 1. In brackets, "
            "the cosine of two languages divided by the geometric mean of their own: corrected for noise."
        ),
        header=cells("", *map(language, codes)),
        align="l" + "r" * len(codes),
        rows=tuple(
            (
                Cell(language(one)),
                *(
                    Cell(_written(whole.get(frozenset((one, other)))), "source" if one == other else "")
                    for other in codes
                ),
            )
            for one in codes
        ),
        data=with_encoder(encoder, whole.values()),
        folded=module != WHOLE,
    )


def _written(one: Alike | None) -> str:
    if one is None:
        return "–"
    text = number(one.cosine) + (f" ± {one.std:.2f}" if one.std is not None else "")
    return text if one.corrected is None else f"{text} ({number(one.corrected)})"


def _parts_table(encoder: str, alike: Sequence[Alike]) -> Table:
    ordered = sorted(alike, key=lambda one: (one.layer is not None, one.layer or 0, one.module))
    shown = tuple(
        cells(
            *("" if one.layer is None else str(one.layer), one.module, f"{one.first}–{one.second}"),
            *map(_number, (one.cosine, one.corrected, one.correlation, one.correlation_corrected)),
            _number(one.overlap),
        )
        for one in ordered
    )
    return Table(
        name=slug("gates-parts", encoder),
        title=f"Likeness of masks by layer and module, {encoder}",
        caption=(
            "As above, for each part of the encoder; without a layer: those of all layers together. "
            "Correlation: the cosine after each mask's mean is taken off, which all gates share whatever the "
            "language. Corrected: divided by the two languages' own. Overlap: of the gates that one of the "
            "two masks keeps, the share that both keep."
        ),
        header=cells(
            *("layer", "module", "languages", "cosine", "corrected", "correlation", "corrected", "overlap")
        ),
        align="rllrrrrr",
        rows=shown,
        data=with_encoder(encoder, ordered),
        folded=True,
    )


def _perplexity_table(encoder: str, masks: Masks) -> Table:
    rows = [row for row in masks.perplexities if row.encoder == encoder]
    codes = list(dict.fromkeys(row.language for row in rows))
    kept = {
        mask: fmean(row.kept for row in own)
        for mask, own in grouped(
            (
                row
                for row in masks.kept
                if row.encoder == encoder and (row.layer, row.module) == (None, WHOLE)
            ),
            lambda row: row.mask,
        ).items()
    }
    shown = tuple(
        (
            *cells(f"pruned for {language(mask)}" if mask else "whole", percent(kept.get(mask, 1.0))),
            *(Cell(_perplexity(own, code), "source" if code == mask else "") for code in codes),
        )
        for mask, own in grouped(rows, lambda row: row.mask).items()
    )
    return Table(
        name=slug("gates-perplexity", encoder),
        title=f"Perplexity under masks, {encoder}",
        caption=(
            "Perplexity of masked language modelling on held-out text of each language, mean ± standard "
            "deviation over draws: of the whole encoder, and of what each language's mask keeps of it. Kept: "
            "percent of the parameters with gates. A language that suffers more under another's mask than "
            "under its own needs parameters that the other does not. Gates are learned on text like the one "
            "held out, so a mask may even help."
        ),
        header=cells("encoder", "kept", *map(language, codes)),
        align="lr" + "r" * len(codes),
        rows=shown,
        data=[asdict(row) for row in rows],
    )


def _perplexity(rows: Sequence[MaskPerplexity], code: str) -> str:
    values = [row.perplexity for row in rows if row.language == code and row.perplexity is not None]
    if not values:
        return "–"
    over = spread(values)
    return f"{over.mean:,.1f} ± {over.std:,.1f}" if over.n > 1 else f"{over.mean:,.1f}"


def _specific_table(encoder: str, rows: Sequence[SpecificGates]) -> Table:
    whole = grouped((row for row in rows if row.layer is None), lambda row: (row.keeps, row.prunes))
    shown = []
    for (keeps, prunes), own in whole.items():
        by_module = {row.module: row for row in own}
        shown.append(
            cells(
                *(language(keeps), language(prunes)),
                *(_share(by_module.get(module)) for module in (*KINDS, WHOLE)),
                f"{by_module[WHOLE].parameters:,}" if WHOLE in by_module else "–",
            )
        )
    return Table(
        name=slug("gates-specific", encoder),
        title=f"Gates that only one language keeps, {encoder}",
        caption=(
            "Gates that every mask of the first language keeps and every mask of the second prunes, and "
            "percent of all; the parameters they have. The CSV has them by layer; which they are stands in "
            "the file of masks beside the record."
        ),
        header=cells("kept by", "pruned by", *KINDS, WHOLE, "parameters"),
        align="llrrrr",
        rows=tuple(shown),
        data=[asdict(row) for row in rows],
    )


def _share(row: SpecificGates | None) -> str:
    return "–" if row is None else f"{row.gates:,} ({percent(row.gates / row.of)})"


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _number(value: float | None) -> str:
    return "–" if value is None else number(value)


def with_encoder(encoder: str, alike: Iterable[Alike]) -> list[Row]:
    """Return the numbers as rows."""
    return [{"encoder": encoder, **asdict(one)} for one in alike]
