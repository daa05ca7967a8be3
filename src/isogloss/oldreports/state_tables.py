"""Tables of language centroids (X-Mixup, Fig. 4) and of mixing ratios (Eq. 5)."""

from collections.abc import Sequence
from dataclasses import asdict

from isogloss.metrics.spread import spread
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.rows import MapPoint, Ratio
from isogloss.oldreports.tables import Table, cells
from isogloss.oldreports.words import language, percent


def map_table(rows: Sequence[MapPoint]) -> list[Table]:
    """Return, for each encoder and method, how much of the variance lies between languages."""
    centroids = [row for row in rows if row.what == "centroid" and row.between is not None]
    first_of = {_model(row): row for row in reversed(centroids)}
    groups = grouped(
        reversed(first_of.values()), lambda row: (row.corpus, row.task, row.encoder, row.method, row.layer)
    )
    shown = tuple(
        cells(
            *(corpus, task, encoder, method or "(encoder)", str(layer)),
            _shares([row.between or 0.0 for row in group]),
            *(
                _shares([getattr(row, axis) or 0.0 for row in group])
                for axis in ("explained_x", "explained_y")
            ),
            str(group[0].sentences),
        )
        for (corpus, task, encoder, method, layer), group in groups.items()
    )
    table = Table(
        name="representation-map",
        title="How much the language moves a sentence",
        caption=(
            "Between: share of the variance of sentence states that lies between the languages' centroids, "
            "in percent, over all dimensions; 0 where translations do not differ on average. First, second: "
            "share of the variance along the two axes of the map. Mean ± standard deviation over seeds."
        ),
        header=cells(
            "corpus", "task", "encoder", "method", "layer", "between", "first", "second", "sentences"
        ),
        align="llllrrrrr",
        rows=shown,
        data=[asdict(row) for row in centroids],
    )
    return [table] if shown else []


def ratio_table(rows: Sequence[Ratio]) -> list[Table]:
    """Return mean and spread of the mixing ratio of every method and language, over seeds."""
    groups = grouped(rows, lambda r: (r.corpus, r.task, r.encoder, r.method, r.source, r.language, r.split))
    shown = tuple(
        cells(
            *(*key[:5], language(key[5]), key[6]),
            _three([row.mean for row in group]),
            _three([row.std for row in group if row.std is not None]),
            *(_three([getattr(row, name) for row in group]) for name in ("q05", "median", "q95")),
            str(len(group)),
        )
        for key, group in groups.items()
    )
    table = Table(
        name="mixup-ratio",
        title="Mixing ratio by language",
        caption=(
            "The share λ of the translation that is mixed into an example (Eq. 5): mean, standard deviation "
            "and quantiles over examples, each a mean ± standard deviation over seeds. If λ follows the "
            "quality of translation, it is lower where translations are noisier."
        ),
        header=cells(
            *("corpus", "task", "encoder", "method", "source", "language", "split"),
            *("mean λ", "spread", "5 %", "median", "95 %", "seeds"),
        ),
        align="lllllllrrrrrr",
        rows=shown,
        data=[asdict(row) for row in rows],
        folded=len(shown) > 12,
    )
    return [table] if shown else []


def _model(row: MapPoint) -> tuple[object, ...]:
    about = (row.corpus, row.task, row.encoder, row.method)
    return (*about, row.source, row.target, row.seed, row.layer)


def _shares(values: Sequence[float]) -> str:
    over = spread(values)
    return f"{percent(over.mean)} ± {percent(over.std)}" if over.n > 1 else percent(over.mean)


def _three(values: Sequence[float]) -> str:
    if not values:
        return "–"
    over = spread(values)
    return f"{over.mean:.3f} ± {over.std:.3f}" if over.n > 1 else f"{over.mean:.3f}"
