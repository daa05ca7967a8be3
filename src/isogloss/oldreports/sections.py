"""The sections of a report, in reading order; one without numbers is empty, and the page names it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from isogloss.oldreports.adjusted import Encoders
from isogloss.oldreports.alignment_tables import alignment_tables
from isogloss.oldreports.bitext_size import size_figures, size_panels, size_tables
from isogloss.oldreports.distances import distance_figures, distance_tables
from isogloss.oldreports.drawing import Figure
from isogloss.oldreports.findings import Findings
from isogloss.oldreports.gate_figures import gate_figures
from isogloss.oldreports.gate_tables import GATES, gate_tables
from isogloss.oldreports.gather import Gathered, measured_beside
from isogloss.oldreports.gradient_figures import conflict_figures
from isogloss.oldreports.gradients import DIAGNOSTICS, conflict_tables
from isogloss.oldreports.interference import interference_table
from isogloss.oldreports.interference_figures import interference_figure
from isogloss.oldreports.likeness import correlation_table, likeness_correlations, likeness_tables
from isogloss.oldreports.marks import difference_tables
from isogloss.oldreports.mixup_sweeps import sweep_figures, sweep_tables
from isogloss.oldreports.model_figures import delta_figure, retrieval_figure, seed_figure
from isogloss.oldreports.model_tables import delta_table, gap_table, retrieval_table, score_tables, seed_table
from isogloss.oldreports.parameters import parameter_table
from isogloss.oldreports.path_figures import aggregate_figures, pair_figures
from isogloss.oldreports.paths import lines
from isogloss.oldreports.perplexities import perplexity_figure, perplexity_table
from isogloss.oldreports.plane_figures import plane_figures
from isogloss.oldreports.rows import (
    KNOWN_DIAGNOSTICS,
    Score,
)
from isogloss.oldreports.seeds import gaps, seed_spreads
from isogloss.oldreports.state_figures import likeness_figures, map_figures
from isogloss.oldreports.state_tables import map_table, ratio_table
from isogloss.oldreports.systems import system_tables
from isogloss.oldreports.tables import Table, plain_table
from isogloss.oldreports.training_figures import adjust_figures, fine_tune_figures, pretrain_figure
from isogloss.oldreports.translation_tables import translation_tables
from isogloss.oldreports.ways_tables import ways_tables
from isogloss.oldreports.words import slug

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading, a sentence on what to look at, and what there is to see."""

    id: str
    title: str
    text: str
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()

    @property
    def empty(self) -> bool:
        """Return whether there is nothing to see."""
        return not (self.figures or self.tables)


def sections(gathered: Gathered, found: Findings) -> list[Section]:
    """Return every section, empty ones included, in reading order."""
    return [
        _scores(found, measured_beside(gathered)),
        _ways(found),
        _sizes(found),
        _paths(found),
        _plane(found),
        _deltas(found),
        _seeds(found),
        _gaps(found),
        _retrieval(found),
        _distances(found),
        _likeness(found),
        _maps(found),
        _ratios(found),
        _sweeps(found),
        _interference(found),
        _conflicts(gathered, found),
        _gates(found),
        _alignments(gathered),
        _translations(gathered),
        _training(gathered, found.encoders),
        _others(gathered),
    ]


def _scores(found: Findings, beside: list[Score]) -> Section:
    side_by_side = [
        *system_tables(found.scores, found.encoders, found.marks),
        *system_tables(beside, found.encoders, found.marks, folded=True),
    ]
    own = score_tables([*found.scores, *beside], found.marks)
    if side_by_side:  # they show the same numbers, and more
        own = [replace(table, folded=True) for table in own]
    return Section(
        id="scores",
        title="Scores per language",
        text="How each method does on each language. Small differences within the spread mean nothing.",
        tables=[*side_by_side, *own, *difference_tables(found.marks)],
    )


def _ways(found: Findings) -> Section:
    return Section(
        id="ways",
        title="Ways to use translations",
        text="What translations bring in training, in one layer, and at inference; what each part is worth.",
        tables=ways_tables(found.ways),
    )


def _sizes(found: Findings) -> Section:
    curves = size_panels(found.scores, found.encoders)
    return Section(
        id="bitext-size",
        title="The size of the bitext",
        text="How much parallel text an adjustment takes, and whether more of it goes on helping.",
        figures=size_figures(curves),
        tables=size_tables(curves),
    )


def _paths(found: Findings) -> Section:
    along = lines(found.points)
    return Section(
        id="paths",
        title="From one language to two: the paths between models",
        text=(
            "If the source score stays level while the target score climbs, many models are equally good on "
            "the source, and nothing in the source's labels says which of them is good on the target."
        ),
        figures=(
            *aggregate_figures(along),
            *pair_figures(along, normalised=False),
            *pair_figures(along, normalised=True),
        ),
    )


def _plane(found: Findings) -> Section:
    return Section(
        id="plane",
        title="The plane through three models",
        text="Wide, even areas are flat: there, small differences between trainings cost little.",
        figures=plane_figures(found.plane),
    )


def _deltas(found: Findings) -> Section:
    return Section(
        id="deltas",
        title="How far apart the models lie",
        text="Lengths of the ways from the bilingual model to the single-language ones, and their angle.",
        figures=delta_figure(found.deltas),
        tables=delta_table(found.deltas),
    )


def _seeds(found: Findings) -> Section:
    rows = seed_spreads(found.scores, found.variances)
    return Section(
        id="seeds",
        title="Variance of source and target over seeds",
        text="How much the score changes when nothing but the seed does.",
        figures=seed_figure(rows),
        tables=seed_table(rows),
    )


def _gaps(found: Findings) -> Section:
    return Section(
        id="transfer-gap",
        title="Transfer gap",
        text="What is lost on the way from the source to the target languages.",
        tables=gap_table(gaps(found.scores, found.gaps)),
    )


def _retrieval(found: Findings) -> Section:
    return Section(
        id="retrieval",
        title="Translation retrieval",
        text="Whether sentences that mean the same lie close together.",
        figures=retrieval_figure(found.retrieval),
        tables=retrieval_table(found.retrieval),
    )


def _distances(found: Findings) -> Section:
    return Section(
        id="word-distance",
        title="Distances of related and unrelated words",
        text=(
            "Whether words that translate each other lie nearer together than words that do not: as the "
            "encoder was, adjusted, and after fine-tuning, which draws all words together."
        ),
        figures=distance_figures(found.bins, found.distances),
        tables=distance_tables(found.distances),
    )


def _likeness(found: Findings) -> Section:
    return Section(
        id="likeness",
        title="How alike the languages' states are (CKA)",
        text="Whether the languages that are represented like the source are those that transfer well.",
        figures=likeness_figures(found.likeness),
        tables=(
            *correlation_table(likeness_correlations(found.likeness, found.scores)),
            *likeness_tables(found.likeness),
        ),
    )


def _maps(found: Findings) -> Section:
    return Section(
        id="maps",
        title="Where sentences of each language lie",
        text="Whether sentences that mean the same lie together, or each language by itself.",
        figures=map_figures(found.maps),
        tables=map_table(found.maps),
    )


def _ratios(found: Findings) -> Section:
    return Section(
        id="mixup-ratio",
        title="Mixing ratios",
        text="How much of its translation is mixed into an example. Without spread, nothing was learned.",
        tables=ratio_table(found.ratios),
    )


def _sweeps(found: Findings) -> Section:
    return Section(
        id="mixup-sweep",
        title="Mixing more, less, or elsewhere",
        text="Whether what was trained is what is best at inference, and how much hangs on it.",
        figures=sweep_figures(found.sweeps),
        tables=sweep_tables(found.sweeps),
    )


def _interference(found: Findings) -> Section:
    return Section(
        id="interference",
        title="Negative interference",
        text="What languages lose by sharing an encoder, and what gives it back without hurting transfer.",
        figures=interference_figure(found.study),
        tables=interference_table(found.study),
    )


def _conflicts(gathered: Gathered, found: Findings) -> Section:
    trainings = {
        "pretraining": gathered.finished("pretrain"),
        "fine-tuning": gathered.finished("fine-tune"),
    }
    return Section(
        id="gradient-conflict",
        title="Gradient conflict",
        text="Whether two languages pull the weights the same way, beside two batches of one language.",
        figures=conflict_figures(trainings, found.conflicts),
        tables=conflict_tables(found.conflicts),
    )


def _gates(found: Findings) -> Section:
    return Section(
        id="language-gates",
        title="Language-specific parameters",
        text="Whether two languages need the same parameters, beside one language asked twice.",
        figures=gate_figures(found.masks.likeness),
        tables=gate_tables(found.masks),
    )


def _alignments(gathered: Gathered) -> Section:
    return Section(
        id="word-alignment",
        title="Word alignment",
        text="How good the links between words are that adjustments and distances were made with.",
        tables=alignment_tables(gathered.finished("align")),
    )


def _translations(gathered: Gathered) -> Section:
    return Section(
        id="translations",
        title="Translations",
        text="What was translated for training and testing, and how good the translators are.",
        tables=translation_tables(gathered.finished("translate")),
    )


def _training(gathered: Gathered, encoders: Encoders) -> Section:
    return Section(
        id="training",
        title="Training curves",
        text="Whether the trainings had settled.",
        figures=(
            *pretrain_figure(gathered.finished("pretrain")),
            *perplexity_figure(gathered.finished("pretrain")),
            *adjust_figures(gathered.finished("adjust"), encoders),
            *fine_tune_figures(gathered.finished("fine-tune")),
        ),
        tables=(
            *perplexity_table(gathered.finished("pretrain")),
            *parameter_table(gathered.finished("pretrain")),
        ),
    )


def _others(gathered: Gathered) -> Section:
    names = [name for name in gathered.diagnostics() if name not in KNOWN_DIAGNOSTICS | {*DIAGNOSTICS, GATES}]
    return Section(
        id="others",
        title="Other measurements",
        text="Diagnostics without a form of their own in this report.",
        tables=[
            plain_table(slug("other", name), name, rows) for name in names if (rows := gathered.raw(name))
        ],
    )
