"""Word alignments that runs of a recipe read: the recipe's aligner, and a request for aligned bitext."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from isogloss.aligners import ALIGNERS
from isogloss.aligners.setting import Aligner
from isogloss.core.errors import add_location
from isogloss.core.run_parts import ALIGNED_SUBWORDS, Named, values_of
from isogloss.data.corpus import Split
from isogloss.data.sources import Sources
from isogloss.planning.recipe_tables import find_planner
from isogloss.recipes.checking import Kinds
from isogloss.recipes.recipe import Table
from isogloss.runs.run import Encoder, LinkedBitext

ALIGNER_KINDS = Kinds("word aligner", ALIGNERS, "aligners", Aligner, default="fast-align", noun="aligner")


@dataclass(frozen=True)
class AlignmentRequest:
    """Aligner (the recipe's [align] table) and split of an alignment."""

    table: Table
    split: Split = "train"
    links: bool = True
    """Whether linked words are read. If not, nothing is aligned."""
    subwords: bool = False
    """Whether subwords are linked instead of words."""
    examples: int = 0
    """Translations that are aligned. 0 for all."""


class PlanAlignments(Protocol):
    """The planner of [align]."""

    def __call__(
        self, request: AlignmentRequest, sources: Sources, encoder: Encoder, bitext: str, pairs: Sequence[str]
    ) -> tuple[LinkedBitext, ...]:
        """Build the alignment of each pair of languages. Raises ConfigError for what cannot be aligned."""


def alignments(
    request: AlignmentRequest, sources: Sources, encoder: Encoder, bitext: str, pairs: Sequence[str]
) -> tuple[LinkedBitext, ...]:
    """Build the alignment of each pair of languages according to the recipe's [align] table.

    An aligner that compares states uses the original encoder, so that an adjusted encoder is not evaluated on
    alignments that it computed. Raises ConfigError if no feature aligns bitext.
    """
    plan = cast(PlanAlignments, find_planner("align"))
    return plan(request, sources, encoder, bitext, pairs)


def links_subwords(method: Named) -> bool:
    """Return whether a method (or an auxiliary loss) reads links of subwords."""
    return values_of(method).get("word") == ALIGNED_SUBWORDS


def aligner_of(table: Table) -> Aligner:
    """Build the word aligner that a recipe's [align] table names."""
    with add_location("align"):
        return ALIGNER_KINDS.read(table)
