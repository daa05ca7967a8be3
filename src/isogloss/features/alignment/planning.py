"""Plan the alignments that the runs of a recipe read."""

from collections.abc import Sequence
from dataclasses import replace

from isogloss.aligners.setting import Aligner
from isogloss.core.errors import ConfigError, DataError, add_location
from isogloss.data.corpus import Split, two_languages
from isogloss.data.sources import Sources, combined_fingerprint
from isogloss.features.alignment.given_links import Unlinked
from isogloss.features.alignment.run import Align, counts_words
from isogloss.planning.alignments import AlignmentRequest, aligner_of
from isogloss.runs.run import Encoder


def plan_alignments(
    request: AlignmentRequest, sources: Sources, encoder: Encoder, bitext: str, pairs: Sequence[str]
) -> tuple[Align, ...]:
    """Build the alignment of each pair of languages according to the recipe's [align] table.

    An aligner that compares states uses the original encoder.
    """
    split = request.split
    aligner = aligner_of(request.table)
    aligner = aligner if request.links else Unlinked()
    with add_location("align"):
        encoder.original.check_layers(aligner, sources.encoders)
    subwords = request.subwords and request.links
    if subwords and not counts_words(aligner):
        raise ConfigError(
            f"word: subwords are linked by how often they co-occur, and aligner {aligner.name!r} "
            "links words. Let [align] name fast-align or eflomal, or choose another word."
        )
    runs = []
    for pair in pairs:
        with add_location("pairs"):
            two_languages(pair)
        with add_location("bitext"):
            sources.needs(bitext, "bitext")
            run = Align(
                bitext=bitext,
                languages=pair,
                split=split,
                alone=True if _is_alone(split, aligner, sources, bitext, pair) else None,
                aligner=aligner,
                encoder=encoder.original if aligner.needs_encoder else None,
                tokenizer=encoder.original if subwords else None,
                examples=request.examples,
            )
            fingerprints = [
                sources.fingerprint(bitext, pair, read.split, examples=read.examples)
                for read in run.splits_read
            ]
        runs.append(replace(run, data=combined_fingerprint(fingerprints)))
    return tuple(runs)


def _is_alone(split: Split, aligner: Aligner, sources: Sources, bitext: str, pair: str) -> bool:
    """Return whether a bitext, such as gold alignments, has no training split to count words in."""
    if split == "train" or not counts_words(aligner):
        return False
    try:
        sources.fingerprint(bitext, pair, "train")
    except DataError:
        return True
    return False
