"""Plan the encoders of an [[adjust]] table."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

from isogloss.core.errors import ConfigError, add_location, check_named
from isogloss.data.sources import Sources
from isogloss.features.adjustment.run import Adjust
from isogloss.methods import ADJUSTMENTS
from isogloss.planning.alignments import AlignmentRequest, alignments, links_subwords
from isogloss.planning.encoders import seeds_for
from isogloss.recipes.checking import Kinds, part_of, refuse_empty_or_twice
from isogloss.recipes.recipe import AdjustTable, Recipe, Table, many
from isogloss.runs.run import Encoder
from isogloss.training.setting import Adjustment

ADJUSTMENT_KINDS = Kinds("way to adjust an encoder", ADJUSTMENTS, "methods", Adjustment, noun="adjustment")


def plan_adjustment(
    table: Table, existing: Mapping[Encoder, str], recipe: Recipe, sources: Sources
) -> dict[Encoder, str]:
    """Build the encoders of one [[adjust]] table: one for each encoder it starts from and each size."""
    method = ADJUSTMENT_KINDS.read(table, AdjustTable)
    choice = part_of(table, AdjustTable)
    check_named("start", "encoder of this recipe", existing.values(), choice.start)
    sizes = many(choice.examples)
    refuse_empty_or_twice(sizes, "examples")
    refuse_empty_or_twice(choice.pairs, "pairs")
    if choice.sample and not any(sizes):
        raise ConfigError(
            "sample: a sample has a size, and examples is 0: all translations. Give examples, or "
            "remove sample."
        )
    encoders: dict[Encoder, str] = {}
    for encoder, seeds in _starts(choice, existing).items():
        _check_start(choice, encoder, method, sources)
        for size in sizes:
            request = AlignmentRequest(
                recipe.align,
                links=method.needs_links,
                subwords=links_subwords(method),
                examples=0 if choice.sample else size,
            )
            adjust = Adjust(
                encoder=encoder,
                method=method,
                aligned=alignments(request, sources, encoder, choice.bitext, choice.pairs),
                sampled=size or None if choice.sample else None,
            )
            label = choice.label or method.name
            sized_label = f"{label} {size}" if len(sizes) > 1 else label
            encoders |= {replace(adjust, seed=seed): sized_label for seed in seeds}
    return encoders


def _check_start(choice: AdjustTable, encoder: Encoder, method: Adjustment, sources: Sources) -> None:
    encoder.check_unmapped(sources.encoders, f"start: {choice.start!r}")
    codes = chain.from_iterable(pair.split("-") for pair in choice.pairs)
    encoder.check_read(codes, sources.encoders, f"pairs: encoder {choice.start!r}")
    encoder.check_layers(method, sources.encoders)


def _starts(choice: AdjustTable, existing: Mapping[Encoder, str]) -> dict[Encoder, tuple[int, ...]]:
    """Return the encoders that are adjusted, each with the seeds of its adjustments.

    Several encoders under one label are adjusted with their own seeds, where the table lists these.
    """
    seeds = many(choice.seed)
    refuse_empty_or_twice(seeds, "seed")
    starts = [encoder for encoder, label in existing.items() if label == choice.start]
    if len(seeds) == 1:
        return dict.fromkeys(starts, seeds)
    with add_location("seed"):
        return {encoder: seeds_for(seeds, encoder, existing) for encoder in starts}
