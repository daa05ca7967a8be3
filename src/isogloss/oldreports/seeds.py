"""Spread over seeds and transfer gaps, as measured or, where no measure was planned, from the scores."""

from collections.abc import Sequence
from statistics import fmean
from typing import TypeVar

from isogloss.metrics.spread import spread
from isogloss.metrics.transfer_gap import transfer_gap
from isogloss.oldreports.kept_scores import Place
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.rows import Gap, Score, SeedSpread

Row = TypeVar("Row", Score, SeedSpread, Place)

SPLITS = ("test", "dev")
"""The split to speak about, best first: numbers of two splits are never mixed."""


def best_split(splits: Sequence[str]) -> str:
    """Return the split to speak about."""
    return next((split for split in SPLITS if split in splits), min(splits, default=""))


def in_best_split(rows: Sequence[Row]) -> list[Row]:
    """Keep the rows of the split to speak about, which each corpus and task has for itself."""
    groups = grouped(rows, lambda row: (row.corpus, row.task))
    best = {key: best_split([row.split for row in group]) for key, group in groups.items()}
    return [row for row in rows if row.split == best[row.corpus, row.task]]


def seed_spreads(scores: Sequence[Score], variances: Sequence[SeedSpread]) -> list[SeedSpread]:
    """Return mean and standard deviation over seeds, one row per method, language and metric, one split."""
    rows = list(variances) or [
        _over_seeds(group) for group in grouped(scores, _all_but_seed).values() if len(group) > 1
    ]
    return in_best_split(rows)


def gaps(scores: Sequence[Score], measured: Sequence[Gap]) -> list[Gap]:
    """Return source score minus mean target score, one row per method, source and seed."""
    if measured:
        return list(measured)
    groups = grouped((row for row in scores if row.method == "source-only"), _one_model).values()
    return [_gap(group) for group in groups if len({row.on_source for row in group}) == 2]


def _over_seeds(group: Sequence[Score]) -> SeedSpread:
    first, over = group[0], spread([row.score for row in group])
    return SeedSpread(
        corpus=first.corpus,
        task=first.task,
        encoder=first.encoder,
        method=first.method,
        source=first.source,
        target=first.target,
        language=first.language,
        role=role_of(first),
        split=first.split,
        metric=first.metric,
        seeds=over.n,
        mean=over.mean,
        std=over.std,
    )


def _gap(group: Sequence[Score]) -> Gap:
    first = group[0]
    source = fmean(row.score for row in group if row.on_source)
    gap = transfer_gap(source, [row.score for row in group if not row.on_source])
    return Gap(
        corpus=first.corpus,
        task=first.task,
        encoder=first.encoder,
        method=first.method,
        source=first.source,
        seed=first.seed,
        split=first.split,
        metric=first.metric,
        source_score=source,
        target_mean=source - gap,
        gap=gap,
    )


def role_of(score: Score) -> str:
    """Return whether the scored language is the source or a target."""
    return "source" if score.on_source else "target"


def _all_but_seed(row: Score) -> tuple[str, ...]:
    about = (row.corpus, row.task, row.encoder, row.method, row.source, row.target)
    return (*about, row.language, row.split, row.metric)


def _one_model(row: Score) -> tuple[str | int, ...]:
    return row.corpus, row.task, row.encoder, row.method, row.source, row.seed, row.split, row.metric
