"""The sections of a report, in reading order: a heading, what to look at, and what makes what is shown.

A part is given all measurements and returns what there is to see; a section without any is named as absent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from isogloss.core.rows import ROWS
from isogloss.reports import landscapes, line_figures, scores, similarity, states, summaries
from isogloss.reports.drawing import Figure
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import slug
from isogloss.reports.tables import Table, plain_table

Part = Callable[[Measurements], Sequence[Table | Figure]]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, a sentence on what to look at, and what makes its tables and figures."""

    id: str
    title: str
    text: str
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """A section with what there is to see in it."""

    section: Section
    tables: Sequence[Table]
    figures: Sequence[Figure]


def shown(section: Section, m: Measurements) -> Shown:
    """Make the tables and figures of a section."""
    made = [one for part in section.parts for one in part(m)]
    return Shown(
        section,
        [one for one in made if isinstance(one, Table)],
        [one for one in made if isinstance(one, Figure)],
    )


def others(m: Measurements) -> list[Table]:
    """Return the rows of diagnostics that no section is about, as they are."""
    return [plain_table(slug("other", kind), kind, m.raw(kind)) for kind in m.kinds() if kind not in ROWS]


SUMMARIES = {one.name or str(one.frame): one.tables for one in summaries.SUMMARIES}
LINES = {one.name: one.figures for one in line_figures.LINE_FIGURES}

SECTIONS: tuple[Section, ...] = (
    Section(
        "scores",
        "Scores per language",
        "How each system does on each language. Small differences within the spread mean nothing.",
        (scores.score_tables,),
    ),
    Section(
        "bitext-size",
        "The size of the bitext",
        "How much parallel text an adjustment takes, and whether more of it goes on helping.",
        (LINES["bitext-size"], scores.BITEXT_SIZE.tables),
    ),
    Section(
        "interference",
        "Negative interference",
        "What languages lose by sharing an encoder, and what gives it back without hurting transfer.",
        (scores.INTERFERENCE.tables,),
    ),
    Section(
        "paths",
        "From one language to two: the paths between models",
        "If the source score stays level while the target score climbs, many models are equally good on the "
        "source, and nothing in the source's labels says which of them is good on the target.",
        (landscapes.path_figures,),
    ),
    Section(
        "plane",
        "The plane through three models",
        "Wide, even areas are flat: there, small differences between trainings cost little.",
        (landscapes.plane_figures,),
    ),
    Section(
        "deltas",
        "How far apart the models lie",
        "Lengths of the ways from one model to two others, and their angle.",
        (landscapes.delta_figures, landscapes.DELTA_TABLE.tables),
    ),
    Section(
        "seeds",
        "Variance of source and target over seeds",
        "How much the score changes when nothing but the seed does.",
        (line_figures.seed_figures, SUMMARIES["seed-spread"]),
    ),
    Section(
        "transfer-gap",
        "Transfer gap",
        "What is lost on the way from the source to the target languages.",
        (SUMMARIES["transfer-gap"],),
    ),
    Section(
        "retrieval",
        "Translation retrieval",
        "Whether sentences that mean the same lie close together.",
        (LINES["retrieval"], SUMMARIES["retrieval-by-layer"]),
    ),
    Section(
        "word-distance",
        "Distances of related and unrelated words",
        "Whether words that translate each other lie nearer together than words that do not: as the encoder "
        "was, adjusted, and after fine-tuning, which draws all words together.",
        (states.distance_figures, states.AUC_TABLE.tables),
    ),
    Section(
        "cka",
        "How similar the languages' states are (CKA)",
        "Whether the languages that are represented like the source are those that transfer well.",
        (similarity.CKA_FIGURE.figures, similarity.CORRELATION_TABLE.tables, similarity.CKA_TABLE.tables),
    ),
    Section(
        "maps",
        "Where sentences of each language lie",
        "Whether sentences that mean the same lie together, or each language by itself.",
        (states.map_figures, states.MAP_TABLE.tables),
    ),
    Section(
        "mixup-ratio",
        "Mixing ratios",
        "How much of its translation is mixed into an example. Without spread, nothing was learned.",
        (SUMMARIES["mixup-ratio"],),
    ),
    Section(
        "mixup-sweep",
        "Mixing more, less, or elsewhere",
        "Whether what was trained is what is best at inference, and how much hangs on it.",
        (LINES["mixup-sweep"], SUMMARIES["mixup-sweep"]),
    ),
    Section(
        "similarity",
        "Gradient conflict and language-specific parameters",
        "Whether two languages pull the weights the same way and need the same parameters, beside one "
        "language measured twice.",
        (
            *(one.figures for one in similarity.SIMILARITY_FIGURES),
            similarity.similarity_tables,
            *(one.tables for one in similarity.GATE_TABLES),
        ),
    ),
    Section(
        "data",
        "Word alignments and translations",
        "How good the links between words are, and what was translated for training and testing.",
        (SUMMARIES["word-alignment"], SUMMARIES["translations"]),
    ),
    Section(
        "training",
        "Training curves",
        "Whether the trainings had settled.",
        (
            *(LINES[name] for name in ("pretraining", "perplexity", "adjusting", "fine-tuning")),
            *(SUMMARIES[name] for name in ("perplexity-by-language", "parameters")),
        ),
    ),
    Section(
        "others", "Other measurements", "Diagnostics without a form of their own in this report.", (others,)
    ),
)
