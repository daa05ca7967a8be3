"""Aligning bitext by itself: the alignments that a recipe would make, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from isogloss.core.errors import StorageError, unknown_name
from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.records import Record, Row
from isogloss.core.runs import Align, Run
from isogloss.data.corpora import SPLITS, Split
from isogloss.data.sources import Sources
from isogloss.experiments.alignments import LINKS, Asked, alignments
from isogloss.experiments.encoders import places, pretrained
from isogloss.experiments.recipe import Recipe, located, refuse_empty_or_twice
from isogloss.experiments.running import Planned, make
from isogloss.experiments.store import Store

COUNTS = ("pairs", "links")
"""What is known of an alignment without gold links."""


@dataclass(frozen=True, kw_only=True)
class AlignmentWanted:
    """Which bitext is aligned, and how."""

    bitext: str
    """Corpus of translations ("bitext:bible")."""
    pairs: tuple[str, ...]
    """Pairs of languages such as en-es."""
    aligner: Mapping[str, Any]
    """Its name and fields, as in a recipe's [align]."""
    encoder: str = "shipped"
    """What an aligner looks at that needs an encoder."""
    split: str = "train"
    examples: int = 0


@dataclass(frozen=True)
class AlignmentMade:
    """An alignment that is there: what it came to, and the file with its links."""

    row: Row
    links: Path
    warnings: tuple[str, ...] = ()


def align_bitext(
    wanted: AlignmentWanted, *, out: Path, data: str = "", on_progress: OnProgress = no_progress
) -> list[AlignmentMade]:
    """Align each pair that is not aligned yet in the folder ``out``; DataError where a file is not there."""
    planned = _plan(wanted, out, data)
    with planned.store.lock():
        planned.write(f"isogloss align {wanted.bitext} {' '.join(wanted.pairs)}")
        outcome = make(planned, jobs=1, announce=lambda *_: None, on_progress=on_progress)
    for key, message in outcome.failed.items():
        raise StorageError(f"alignment {key}: {message}")
    return [
        AlignmentMade(_row(run, record), planned.store.folder(run) / LINKS, record.warnings)
        for run, record in ((run, planned.store.record(run)) for run in planned.runs)
        if isinstance(run, Align)
    ]


def _row(run: Align, record: Record) -> Row:
    """Say what was aligned, how, and what it came to; nothing of gold links where there are none."""
    about = {"languages": run.languages, "split": run.split, "aligner": run.aligner.name}
    (found,) = record.rows
    scored = bool(found["gold_pairs"])
    return {
        "bitext": run.bitext,
        **about,
        **{name: found[name] for name in found if scored or name in COUNTS},
    }


def _plan(wanted: AlignmentWanted, out: Path, data: str) -> Planned:
    if wanted.split not in SPLITS:
        raise unknown_name("--split", "split", wanted.split, SPLITS)
    refuse_empty_or_twice(wanted.pairs, "pairs")
    split: Split = next(one for one in SPLITS if one == wanted.split)
    sources = Sources(data, places([wanted.encoder]))
    with located("--encoder"):
        encoder = pretrained(wanted.encoder)
    asked = Asked(dict(wanted.aligner), "command line", split)
    runs = alignments(asked, sources, encoder, wanted.bitext, wanted.pairs)
    recipe = Recipe(title=f"Word alignments of {wanted.bitext}")
    sized: list[Run] = [replace(run, examples=wanted.examples) for run in runs]
    return Planned(recipe=recipe, text="", runs=sized, store=Store(out), sources=sources)
