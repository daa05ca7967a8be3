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
    parts = [part for show in section.parts for part in show(m)]
    return ShownSection(
        section,
        [part for part in parts if isinstance(part, Table)],
        [part for part in parts if isinstance(part, Figure)],
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
        "Which differences are significant?",
        "Scores by further measures, and every test. A difference within the spread means nothing.",
    ),
    "published": (
        "How do the published numbers compare?",
        "Each number that the paper prints, and what these runs measured for it.",
    ),
    "language-groups": (
        "Which families, scripts and resources does it work for?",
        "Scores by group of languages. A group of few languages is those languages, not its kind.",
    ),
    "choice": (
        "Which model to choose without labels?",
        "The candidate to take in a language without labels, how certain that is, and what it loses against "
        "the best one, the one of the best source score, and a random one.",
    ),
    "bitext-size": (
        "How much bitext is needed?",
        "Scores by the amount of parallel text that an adjustment reads.",
    ),
    "interference": (
        "What do languages lose by sharing an encoder?",
        "Negative interference, and what reduces it without hurting transfer.",
    ),
    "paths": (
        "What lies between a model of one language and one of two?",
        "If the source score stays level while the target score climbs, many models are equally good on "
        "the source, and the source's labels do not show which of them is good on the target.",
    ),
    "plane": (
        "How flat is the surface around the models?",
        "Wide, even areas are flat: there, small differences between trainings cost little.",
    ),
    "deltas": (
        "How far apart are the models?",
        "Distances and angle between models in weight space.",
    ),
    "seeds": (
        "How much does the seed alone change?",
        "The spread of scores over models that differ in nothing but the seed.",
    ),
    "transfer-gap": (
        "What is lost from source to target?",
        "The transfer gap: the source score minus the mean score of the targets.",
    ),
    "retrieval": ("Do translations lie close together?", "Retrieval of translations among sentences."),
    "mining": (
        "Are translations found among unrelated sentences?",
        "Bitext mining, among sentences of which most have no translation.",
    ),
    "anisotropy": (
        "How similar are any two sentences?",
        "The mean cosine of two sentences of one language, with which cosines between languages compare.",
    ),
    "word-distance": (
        "Are translated words closer than other words?",
        "Distances of related and unrelated words: in the original encoder, adjusted, and after fine-tuning, "
        "which draws all words together.",
    ),
    "cka": (
        "How similar are the languages' states (CKA)?",
        "Whether languages that are represented like the source are those that transfer well.",
    ),
    "maps": (
        "Where do sentences of each language lie?",
        "Whether sentences with the same meaning lie together, or each language by itself.",
    ),
    "mixup-ratio": (
        "How much of the translation is mixed in?",
        "The mixing ratio of each example. Without spread, nothing was learned.",
    ),
    "link-attention": (
        "Does mixing find the translated words?",
        "The share of the attention that mixes two sentences on words that translate each other.",
    ),
    "mixup-sweep": (
        "Would more or less mixing be better?",
        "Whether the trained ratio is also the best at inference, and how much depends on it.",
    ),
    "similarity": (
        "Do languages pull the weights the same way?",
        "Gradient conflict and language-specific parameters of two languages, next to one language measured "
        "twice.",
    ),
    "data": (
        "How good are alignments and translations?",
        "Links between words, and what was translated for training and testing.",
    ),
    "training": ("Had training converged?", "Dev scores, losses and perplexities during training."),
    "trained-parameters": (
        "How many parameters are trained?",
        "The numbers that each model may change where only a part of the weights is trained.",
    ),
    "others": ("What else was measured?", "Diagnostics without a form of their own in this report."),
}
"""Title and text of every section, in their order."""

SECTIONS = tuple(
    Section(key, title, text, tuple(entry.show for entry in ENTRIES if entry.section == key))
    for key, (title, text) in HEADINGS.items()
)
