"""Align bitext without a recipe."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from isogloss.core.errors import ConfigError, add_location
from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.records import Record, Row
from isogloss.data.corpora.own import register_corpus
from isogloss.data.sources import Sources
from isogloss.engine.single import COMMAND_LINE, MadeFile, make_runs, parse_split
from isogloss.features.alignment.planning import plan_alignments
from isogloss.features.alignment.run import LINKS, Align
from isogloss.planning.alignments import AlignmentRequest
from isogloss.planning.plan import Planned
from isogloss.recipes.checking import refuse_empty_or_twice
from isogloss.recipes.recipe import Recipe
from isogloss.runs.pretrained import identify_encoder, model_folders
from isogloss.store import store_at

COUNTS = ("pairs", "links")
"""Columns of an alignment without gold links."""


@dataclass(frozen=True, kw_only=True)
class BitextToAlign:
    """Bitext to align and the aligner's options."""

    bitext: str
    """Corpus of translations ("bitext:bible")."""
    pairs: tuple[str, ...]
    """Pairs of languages such as en-es."""
    aligner: Mapping[str, object]
    """Name and fields of the aligner, as in a recipe's [align]."""
    encoder: str = "shipped"
    """The encoder of an aligner that needs one."""
    split: str = "train"
    examples: int = 0


def align_bitext(
    request: BitextToAlign, *, folder: Path, data: str = "", on_progress: OnProgress = no_progress
) -> list[MadeFile]:
    """Align the pairs that are not aligned yet in the folder ``folder``.

    Raises DataError if a file does not exist.
    """
    bitext = register_corpus(request.bitext, data)
    refuse_empty_or_twice(request.pairs, "pairs")
    sources = Sources(data, model_folders([request.encoder]))
    with add_location("--encoder"):
        encoder = identify_encoder(request.encoder)
    setting = AlignmentRequest(dict(request.aligner), parse_split(request.split), examples=request.examples)
    with add_location(COMMAND_LINE):
        runs = plan_alignments(setting, sources, encoder, bitext, request.pairs)
    if request.encoder != "shipped" and all(run.encoder is None for run in runs):
        raise ConfigError(
            f"--encoder {request.encoder}: aligner {runs[0].aligner.name!r} uses none. Remove it, or "
            "name an aligner that does: --aligner encoder."
        )
    plan = Planned(
        recipe=Recipe(title=f"Word alignments of {bitext}"),
        text="",
        runs=list(runs),
        store=store_at(folder),
        sources=sources,
    )
    make_runs(plan, f"isogloss align {bitext} {' '.join(request.pairs)}", "alignment", on_progress)
    return [
        MadeFile(_alignment(run, record), plan.store.folder(run) / LINKS, record.warnings)
        for run, record in ((run, plan.store.record(run)) for run in runs)
    ]


def _alignment(run: Align, record: Record) -> Row:
    """Return corpus, aligner and counts of an alignment, with scores on gold links."""
    (row,) = record.rows
    has_gold = bool(row["gold_pairs"])
    return {
        "bitext": run.bitext,
        "languages": run.languages,
        "split": run.split,
        "aligner": run.aligner.name,
        **{name: value for name, value in row.items() if has_gold or name in COUNTS},
    }
