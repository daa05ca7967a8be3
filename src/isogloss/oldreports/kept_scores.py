"""What score runs kept, example by example, put in order: test set by test set, system by system."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from isogloss.core.errors import StorageError
from isogloss.data.prediction_table import Array, Kept, read_predictions
from isogloss.metrics.paired import System
from isogloss.oldreports.gather import Run, run_rows
from isogloss.oldreports.rows import Score


@dataclass(frozen=True, slots=True)
class Place:
    """Where systems are compared: one measure on one split of one language, for one source."""

    corpus: str
    task: str
    source: str
    split: str
    measure: str
    language: str


@dataclass(frozen=True, slots=True)
class Label:
    """A system: an encoder and a method, as the report names them."""

    encoder: str
    method: str

    def __str__(self) -> str:
        """Write it as ``--against`` takes it."""
        return f"{self.encoder} / {self.method}"


@dataclass(frozen=True)
class Seed:
    """What one system with one seed adds to a measure [example], averaged over the models it made there.

    A method that trains on a target has a model for each target, and all of them are scored on the source.
    """

    ids: tuple[str, ...]
    part: Array
    whole: Array


Models = dict[Label, dict[int, list[Seed]]]


@dataclass(frozen=True)
class KeptScores:
    """The contributions of all systems; ``main`` has the places of each task's own metric."""

    models: Mapping[Place, Models]
    main: frozenset[Place] = frozenset()
    without: tuple[str, ...] = ()
    """Score runs that kept nothing: an earlier version made them."""
    notes: tuple[str, ...] = field(default=())

    def labels(self) -> list[Label]:
        """Return the systems, in the order of the runs."""
        return list(dict.fromkeys(label for models in self.models.values() for label in models))


def kept_scores(runs: Iterable[Run]) -> KeptScores:
    """Read what the finished score runs among these kept; a damaged file is a note."""
    models: dict[Place, Models] = {}
    main: set[Place] = set()
    without, notes = [], []
    for run in runs:
        if run.diagnostic != Score.diagnostic:
            continue
        if run.predictions is None:
            without.append(run.id)
            continue
        try:
            kept = read_predictions(run.predictions)
        except StorageError as error:
            notes.append(f"Run {run.id}: {str(error).removeprefix(str(run.predictions.parent))}")
            continue
        for row in run_rows(run, Score)[0]:
            if row.language in kept and (not row.target or row.on_own_target or row.on_source):
                main.add(_add(models, row, kept[row.language]))
    return KeptScores(_with_sourceless(models), frozenset(main), tuple(without), tuple(notes))


def one_per_seed(models: Mapping[int, Sequence[Seed]]) -> dict[int, Seed] | None:
    """Return each seed's models averaged; None where they did not see the same examples."""
    found = {}
    for number, several in models.items():
        if len({one.ids for one in several}) > 1:
            return None
        part, whole = ([getattr(one, name) for one in several] for name in ("part", "whole"))
        found[number] = Seed(several[0].ids, np.mean(part, axis=0), np.mean(whole, axis=0))
    return found


def system_of(models: Mapping[int, Seed], seeds: Sequence[int]) -> System:
    """Put the seeds of a system together as [seed example]."""
    return System(
        np.stack([models[seed].part for seed in seeds]), np.stack([models[seed].whole for seed in seeds])
    )


def _add(models: dict[Place, Models], row: Score, kept: Kept) -> Place:
    """Add every measure of a row; return the place of the task's own."""
    place = Place(row.corpus, row.task, row.source, row.split, row.metric, row.language)
    for measure, (part, whole) in kept.measures.items():
        systems = models.setdefault(replace(place, measure=measure), {})
        seeds = systems.setdefault(Label(row.encoder, row.method), {})
        seeds.setdefault(row.seed, []).append(Seed(kept.ids, part, whole))
    return place


def _with_sourceless(models: dict[Place, Models]) -> dict[Place, Models]:
    """Let a method without a source (target-only) stand beside those of every source."""
    found = {place: dict(systems) for place, systems in models.items()}
    for place in [place for place in models if not place.source]:
        beside = [other for other in models if other.source and replace(other, source="") == place]
        for other in beside:
            found[other] = {**found[other], **models[place]}
        if beside:
            del found[place]
    return found
