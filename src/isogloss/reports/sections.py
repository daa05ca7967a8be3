"""The sections of a report: their headings, and the one list of all tables and figures.

A table or figure is a value that names its section: ``Summary`` and ``LineFigure`` are made from one frame,
``Made`` calls a function. To add one, add its entry; the sections follow.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from isogloss.core.rows import ROWS
from isogloss.reports import choosing, landscapes, line_figures, published, scores, similarity, states
from isogloss.reports.drawing import Figure
from isogloss.reports.language_groups import group_tables
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import slug
from isogloss.reports.summaries import SUMMARIES
from isogloss.reports.tables import Table, plain_table

Show = Callable[[Measurements], Sequence[Table | Figure]]


class Entry(Protocol):
    """A table or figure of the page, or several of a kind."""

    @property
    def section(self) -> str:
        """The section that shows it: a key of ``HEADINGS``."""

    @property
    def show(self) -> Show:
        """Make its tables or figures; none where nothing was measured."""


@dataclass(frozen=True, slots=True)
class Made:
    """The tables or figures that a function makes."""

    section: str
    show: Show


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, a sentence on what it shows, and the functions that make its tables and figures."""

    id: str
    title: str
    text: str
    parts: tuple[Show, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownSection:
    """A section with its tables and figures."""

    section: Section
    tables: Sequence[Table]
    figures: Sequence[Figure]


def show_section(section: Section, m: Measurements) -> ShownSection:
    """Make the tables and figures of a section."""
    made = [part for show in section.parts for part in show(m)]
    return ShownSection(
        section,
        [part for part in made if isinstance(part, Table)],
        [part for part in made if isinstance(part, Figure)],
    )


def other_tables(m: Measurements) -> list[Table]:
    """Return the rows of diagnostics without a section, as recorded."""
    return [plain_table(slug("other", kind), kind, m.raw(kind)) for kind in m.kinds() if kind not in ROWS]


ENTRIES: tuple[Entry, ...] = (
    Made("scores", scores.score_tables),
    Made("published", published.published_tables),
    Made("language-groups", group_tables),
    Made("choice", choosing.choice_tables),
    Made("choice", choosing.regret_tables),
    Made("paths", landscapes.path_figures),
    Made("plane", landscapes.plane_figures),
    Made("deltas", landscapes.delta_figures),
    Made("seeds", line_figures.seed_figures),
    Made("word-distance", states.distance_figures),
    Made("maps", states.map_figures),
    *SUMMARIES,
    *line_figures.LINE_FIGURES,
    *(line_figures.BITEXT_SIZE, landscapes.DELTA_TABLE, states.AUC_TABLE, states.MAP_TABLE),
    *(similarity.CKA_FIGURE, similarity.CORRELATION_TABLE, similarity.CKA_TABLE),
    *(*similarity.SIMILARITY_FIGURES, similarity.GATES_FIGURE),
    *(*similarity.SIMILARITY_TABLES, *similarity.GATE_TABLES),
    Made("others", other_tables),
)
"""All tables and figures; within a section they stand in this order."""

HEADINGS: Mapping[str, tuple[str, str]] = {
    "scores": (
        "Further scores, and tests of differences",
        "How each system does on each language. Small differences within the spread mean nothing.",
    ),
    "published": (
        "Published next to ours",
        "Each number that the paper prints, and what these runs measured for it.",
    ),
    "language-groups": (
        "Scores by family, script and resources",
        "On which kinds of languages a system does well. A group of few languages is those languages, not "
        "its kind.",
    ),
    "choice": (
        "Choosing a model without labels",
        "Which candidate to take in a language whose labels are not looked at, how sure that is, and what "
        "it loses against the best, the one of the best source score, and one drawn at random.",
    ),
    "bitext-size": (
        "The size of the bitext",
        "How much parallel text an adjustment takes, and whether more of it goes on helping.",
    ),
    "interference": (
        "Negative interference",
        "What languages lose by sharing an encoder, and what gives it back without hurting transfer.",
    ),
    "paths": (
        "From one language to two: the paths between models",
        "If the source score stays level while the target score climbs, many models are equally good on "
        "the source, and nothing in the source's labels says which of them is good on the target.",
    ),
    "plane": (
        "The plane through three models",
        "Wide, even areas are flat: there, small differences between trainings cost little.",
    ),
    "deltas": (
        "How far apart the models lie",
        "Lengths of the ways from one model to two others, and their angle.",
    ),
    "seeds": (
        "Variance of source and target over seeds",
        "How much the score changes when nothing but the seed does.",
    ),
    "transfer-gap": ("Transfer gap", "What is lost on the way from the source to the target languages."),
    "retrieval": ("Translation retrieval", "Whether sentences that mean the same lie close together."),
    "mining": ("Bitext mining", "How many translations are found among sentences of which most have none."),
    "anisotropy": (
        "Anisotropy",
        "How similar the states of any two sentences of a language are, which cosines between languages are "
        "read against.",
    ),
    "word-distance": (
        "Distances of related and unrelated words",
        "Whether words that translate each other lie nearer together than words that do not: as the "
        "encoder was, adjusted, and after fine-tuning, which draws all words together.",
    ),
    "cka": (
        "How similar the languages' states are (CKA)",
        "Whether the languages that are represented like the source are those that transfer well.",
    ),
    "maps": (
        "Where sentences of each language lie",
        "Whether sentences that mean the same lie together, or each language by itself.",
    ),
    "mixup-ratio": (
        "Mixing ratios",
        "How much of its translation is mixed into an example. Without spread, nothing was learned.",
    ),
    "link-attention": (
        "Whether mixing finds translated words",
        "How much of the attention that mixes a sentence with its translation lies on the words that "
        "translate each other.",
    ),
    "mixup-sweep": (
        "Mixing more, less, or elsewhere",
        "Whether what was trained is what is best at inference, and how much hangs on it.",
    ),
    "similarity": (
        "Gradient conflict and language-specific parameters",
        "Whether two languages pull the weights the same way and need the same parameters, next to one "
        "language measured twice.",
    ),
    "data": (
        "Word alignments and translations",
        "How good the links between words are, and what was translated for training and testing.",
    ),
    "training": ("Training curves", "Whether the trainings had settled."),
    "trained-parameters": (
        "Trained parameters",
        "How many numbers each model may change where only a part of the weights is trained.",
    ),
    "others": ("Other measurements", "Diagnostics without a form of their own in this report."),
}
"""Title and text of every section, in their order."""

SECTIONS = tuple(
    Section(key, title, text, tuple(entry.show for entry in ENTRIES if entry.section == key))
    for key, (title, text) in HEADINGS.items()
)
