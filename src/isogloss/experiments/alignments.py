"""From a recipe to the word alignments its runs read."""

from collections.abc import Sequence
from dataclasses import fields

from isogloss.aligners import ALIGNERS
from isogloss.core.errors import unknown_name
from isogloss.core.runs import Align, Encoder, original
from isogloss.data.bitext import two_languages
from isogloss.data.corpora import Split
from isogloss.data.sources import Sources, joined
from isogloss.experiments.recipe import Table, checked, located, refuse_unknown


def alignments(
    table: Table,
    sources: Sources,
    encoder: Encoder,
    *,
    bitext: str,
    pairs: Sequence[str],
    split: Split = "train",
    where: str,
) -> tuple[Align, ...]:
    """Build the alignment of each pair of languages as the recipe's [align] table says it.

    An aligner that looks at states looks at those of the original encoder, so that an adjusted one is not
    measured by its own alignments.
    """
    name = table.get("name", "fast-align")
    if name not in ALIGNERS:
        raise unknown_name(f"{where}: align", "word aligner", str(name), ALIGNERS)
    kind = ALIGNERS[name]
    own = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    refuse_unknown(table, {"name", *own}, f"aligner {name}", f"{where}: align")
    aligner = checked(kind, {key: table[key] for key in own & set(table)}, f"{where}: align")
    found = []
    for pair in pairs:
        with located(f"{where}: pairs"):
            two_languages(pair)
        with located(f"{where}: bitext"):
            sources.needs(bitext, "bitext")
            read = splits_of(aligner.needs_encoder, split)
            files = [sources.fingerprint(bitext, pair, one) for one in read]
        found.append(
            Align(
                bitext=bitext,
                languages=pair,
                split=split,
                aligner=aligner,
                encoder=original(encoder) if aligner.needs_encoder else None,
                data=joined(files),
            )
        )
    return tuple(found)


def splits_of(needs_encoder: bool, split: Split) -> tuple[Split, ...]:
    """Return the splits that are aligned together: counting words takes more text than a dev set has."""
    return (split,) if needs_encoder or split == "train" else ("train", split)
