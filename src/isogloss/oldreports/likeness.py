"""CKA by language, and whether it goes with transfer: X-Mixup, Table 2 and Table 7.

The join is by encoder, task, method, source and language. CKA of a bare encoder is set against the scores of
every method trained on it; CKA within models, against those models' own scores: CKA on the corpus that was
scored, or, where there is none, on any, since labelled text is seldom parallel. (There, models that a method
made from two corpora of one task are not told apart.)
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean

from isogloss.metrics.correlation import bootstrap_interval, spearman
from isogloss.metrics.spread import spread
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.rows import Likeness, Score
from isogloss.oldreports.seeds import in_best_split
from isogloss.oldreports.tables import Cell, Table, cells
from isogloss.oldreports.words import count, language, slug

FEWEST = 3
"""Languages a correlation is computed from; fewer always give 1 or -1."""

Key = tuple[str, str, str, str, str]
"""Corpus, task, encoder, method, source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LikenessCorrelation:
    """Spearman's rho of CKA and score over target languages, for one layer."""

    corpus: str
    task: str
    encoder: str
    method: str
    source: str
    metric: str
    split: str
    states: str
    """Whose states: encoder (before fine-tuning) or model."""
    layer: int
    languages: str
    points: int
    rho: float
    p_value: float
    low: float
    high: float


def likeness_correlations(likeness: Sequence[Likeness], scores: Sequence[Score]) -> list[LikenessCorrelation]:
    """Correlate over target languages, each language's CKA and score being means over seeds."""
    own = [s for s in in_best_split(scores) if not s.on_source and (not s.target or s.on_own_target)]
    found = []
    for (key, metric), group in grouped(own, lambda s: (_key(s), s.metric)).items():
        by_language = {
            code: fmean(s.score for s in members)
            for code, members in grouped(group, lambda s: s.language).items()
        }
        for states, rows in (("encoder", _of_encoder(likeness, key)), ("model", _of_models(likeness, key))):
            for layer, alike in sorted(_by_layer(rows).items()):
                codes = [code for code in by_language if code in alike]
                if len(codes) >= FEWEST:
                    x, y = [alike[code] for code in codes], [by_language[code] for code in codes]
                    found.append(_correlation(key, (metric, group[0].split, states, layer), codes, (x, y)))
    return found


def _correlation(
    key: Key, about: tuple[str, str, str, int], codes: Sequence[str], sides: tuple[list[float], list[float]]
) -> LikenessCorrelation:
    over = spearman(*sides)
    low, high = bootstrap_interval(*sides)
    names = ("corpus", "task", "encoder", "method", "source")
    metric, split, states, layer = about
    return LikenessCorrelation(
        **dict(zip(names, key, strict=True)),
        metric=metric,
        split=split,
        states=states,
        layer=layer,
        languages=" ".join(codes),
        points=len(codes),
        rho=over.rho,
        p_value=over.p_value,
        low=low,
        high=high,
    )


def _key(row: Score | Likeness) -> Key:
    return row.corpus, row.task, row.encoder, row.method, row.source


def _of_encoder(rows: Sequence[Likeness], key: Key) -> list[Likeness]:
    return [
        row for row in rows if not row.method and row.encoder == key[2] and row.first in key[4].split("+")
    ]


def _of_models(rows: Sequence[Likeness], key: Key) -> list[Likeness]:
    """Return the rows of a model; its CKA may have been measured on another corpus, as on bitext."""
    corpus, *about = key
    own = [
        row
        for row in rows
        if row.method
        and list(_key(row)[1:]) == about
        and (not row.target or row.second in row.target.split("+"))
    ]
    return [row for row in own if row.corpus == corpus] or own


def _by_layer(rows: Sequence[Likeness]) -> dict[int, dict[str, float]]:
    """Return mean CKA over seeds by layer and language."""
    groups = grouped((row for row in rows if row.cka is not None), lambda row: (row.layer, row.second))
    found: dict[int, dict[str, float]] = {}
    for (layer, code), members in groups.items():
        found.setdefault(layer, {})[code] = fmean(row.cka or 0.0 for row in members)
    return found


def correlation_table(rows: Sequence[LikenessCorrelation]) -> list[Table]:
    """Return rho, interval and p-value of every method and layer."""
    shown = tuple(
        cells(
            *(row.corpus, row.task, row.encoder, row.method, row.states, str(row.layer), str(row.points)),
            *(_number(row.rho), f"{_number(row.low)} to {_number(row.high)}", f"{row.p_value:.3f}"),
        )
        for row in rows
    )
    table = Table(
        name="likeness-and-transfer",
        title="Does CKA go with transfer?",
        caption=(
            "Spearman's ρ of CKA with the source language and the score over the target languages, each a "
            "mean over seeds; the source itself, whose CKA is 1, is left out. States: of the encoder before "
            "fine-tuning, or within the fine-tuned model. p: two-sided, exact up to 7 languages, not "
            "corrected for the number of layers. Interval: 95 %, bootstrap over languages; rough with few."
        ),
        header=cells(
            "corpus", "task", "encoder", "method", "states", "layer", "languages", "ρ", "interval", "p"
        ),
        align="lllllrrrrr",
        rows=shown,
        data=[asdict(row) for row in rows],
        folded=len(shown) > 12,
    )
    return [table] if shown else []


def likeness_tables(rows: Sequence[Likeness]) -> list[Table]:
    """Return a table for each encoder and first language: models and layers by languages."""
    return [
        _likeness_table(encoder, first, group)
        for (encoder, first), group in grouped(rows, lambda row: (row.encoder, row.first)).items()
    ]


def _likeness_table(encoder: str, first: str, rows: Sequence[Likeness]) -> Table:
    codes = list(dict.fromkeys(row.second for row in rows))
    about = grouped(rows, lambda row: (row.corpus, row.task, row.method, row.layer))
    shown = tuple(
        (
            *cells(f"{corpus} {task}".strip(), method or "(encoder)", str(layer)),
            *_likeness_cells(group, codes),
        )
        for (corpus, task, method, layer), group in about.items()
    )
    sentences = sorted({row.sentences for row in rows})
    counts = (
        count(sentences[-1], "sentence")
        if len(sentences) == 1
        else f"{sentences[0]} to {sentences[-1]} sentences"
    )
    return Table(
        name=slug("cka", encoder, first),
        title=f"CKA with {language(first)}, {encoder}",
        caption=(
            f"Linear CKA of the mean-pooled states of {counts} and of their translations, by layer (0: the "
            f"embeddings); mean ± standard deviation over seeds. 1: equal up to rotation and scale. With "
            f"fewer sentences than dimensions it comes out too high; the CSV has the debiased form beside it."
        ),
        header=cells("task", "method", "layer", *map(language, codes), "mean"),
        align="llr" + "r" * (len(codes) + 1),
        rows=shown,
        data=[asdict(row) for row in rows],
        folded=len(shown) > 12,
    )


def _likeness_cells(rows: Sequence[Likeness], codes: Sequence[str]) -> list[Cell]:
    values: Mapping[str, list[float]] = {
        code: [row.cka for row in rows if row.second == code and row.cka is not None] for code in codes
    }
    means = [fmean(own) for own in values.values() if own]
    whole = _number(fmean(means)) if len(means) == len(codes) else "–"
    return [*(Cell(_over(own)) for own in values.values()), Cell(whole)]


def _over(values: Sequence[float]) -> str:
    if not values:
        return "–"
    over = spread(values)
    return f"{_number(over.mean)} ± {over.std:.2f}" if over.n > 1 else _number(over.mean)


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
