"""From a recipe to the word alignments its runs read."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, cast

from isogloss.aligners import ALIGNERS
from isogloss.core.errors import DataError, unknown_name
from isogloss.core.run_graph import original
from isogloss.core.runs import Align, Encoder
from isogloss.data.bitext import two_languages
from isogloss.data.corpora import Split
from isogloss.data.sources import Sources, joined
from isogloss.experiments.recipe import Table, checked, located, refuse_unknown


@dataclass(frozen=True)
class Asked:
    """How words are aligned: the recipe's [align] table, the place that asks for it, and the split."""

    table: Table
    where: str
    split: Split = "train"


def alignments(
    asked: Asked, sources: Sources, encoder: Encoder, bitext: str, pairs: Sequence[str]
) -> tuple[Align, ...]:
    """Build the alignment of each pair of languages as the recipe's [align] table says it.

    An aligner that looks at states looks at those of the original encoder, so that an adjusted one is not
    measured by its own alignments.
    """
    where, aligner = asked.where, aligner_of(asked.table, asked.where)
    found = []
    for pair in pairs:
        with located(f"{where}: pairs"):
            two_languages(pair)
        with located(f"{where}: bitext"):
            sources.needs(bitext, "bitext")
            run = Align(
                bitext=bitext,
                languages=pair,
                split=asked.split,
                alone=True if _is_alone(asked.split, aligner, sources, bitext, pair) else None,
                aligner=aligner,
                encoder=original(encoder) if aligner.needs_encoder else None,
            )
            files = [sources.fingerprint(bitext, pair, one) for one in splits_aligned(run)]
        found.append(replace(run, data=joined(files)))
    return tuple(found)


def splits_aligned(run: Align) -> tuple[Split, ...]:
    """Return the splits that are aligned together: counting words takes more text than a dev set has."""
    aligner, split = cast(Any, run.aligner), cast(Split, run.split)
    return (split,) if aligner.needs_encoder or split == "train" or run.alone else ("train", split)


def _is_alone(split: Split, aligner: Any, sources: Sources, bitext: str, pair: str) -> bool:
    """Tell whether a bitext, such as one of gold alignments, has no training split to count words in."""
    if aligner.needs_encoder or split == "train":
        return False
    try:
        sources.fingerprint(bitext, pair, "train")
    except DataError:
        return True
    return False


def aligner_of(table: Table, where: str) -> Any:
    """Build the word aligner that a recipe's [align] table names."""
    name = table.get("name", "fast-align")
    if name not in ALIGNERS:
        raise unknown_name(f"{where}: align", "word aligner", str(name), ALIGNERS)
    kind = ALIGNERS[name]
    own = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    refuse_unknown(table, {"name", *own}, f"aligner {name}", f"{where}: align")
    return checked(kind, {key: table[key] for key in own & set(table)}, f"{where}: align")
