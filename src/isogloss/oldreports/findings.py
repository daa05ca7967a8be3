"""What the records hold, typed: the rows of every diagnostic, their tests, and the claims they test."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from isogloss.oldreports.adjusted import Encoders, encoders_of
from isogloss.oldreports.adjustment_claims import Evidence, adjustment_claims
from isogloss.oldreports.claims import Claim, claims
from isogloss.oldreports.gate_claims import gate_claims
from isogloss.oldreports.gate_tables import Masks, masks_of
from isogloss.oldreports.gather import Gathered, mixed_test_sets, rows_of, run_rows
from isogloss.oldreports.gradient_claims import gradient_claims
from isogloss.oldreports.gradients import Conflict, conflicts_of
from isogloss.oldreports.interference import Study, study_of
from isogloss.oldreports.interference_claims import interference_claims
from isogloss.oldreports.marks import Marks, marks_of
from isogloss.oldreports.mixup_claims import MixupEvidence, mixup_claims
from isogloss.oldreports.pretrained_encoders import encoders_from_text
from isogloss.oldreports.rows import (
    AdjustStep,
    Alignment,
    Delta,
    DistanceBin,
    Distances,
    Epoch,
    Gap,
    Likeness,
    MapPoint,
    Parameters,
    PathPoint,
    Perplexity,
    PlanePoint,
    PretrainStep,
    Ratio,
    Retrieval,
    Score,
    SeedSpread,
    SweepPoint,
)
from isogloss.oldreports.ways import Ways, inputs_of, ways_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The typed rows of all records."""

    scores: list[Score]
    points: list[PathPoint]
    plane: list[PlanePoint]
    deltas: list[Delta]
    variances: list[SeedSpread]
    gaps: list[Gap]
    retrieval: list[Retrieval]
    distances: list[Distances]
    bins: list[DistanceBin]
    likeness: list[Likeness]
    maps: list[MapPoint]
    ratios: list[Ratio]
    sweeps: list[SweepPoint]
    conflicts: list[Conflict]
    masks: Masks
    marks: Marks
    encoders: Encoders
    mixed: Mapping[str, str]
    """Test sets of two languages, each with the plain one beside it."""
    otherwise: Collection[str]
    """Test sets whose inputs do not come as they are: mixed, translated, or beside translations."""
    ways: Ways
    """Scores of all ways to use translations; none where no inputs came in translation."""
    study: Study | None
    """Encoders of one language, of several, and with modules; None where they are not compared."""

    def claims(self) -> tuple[Claim, ...]:
        """Test the claims of the paper on transfer, which knows no adjusted encoders, on the others."""
        plain = self.originals()
        return claims(plain.points, plain.scores, plain.variances, plain.deltas)

    def adjustment_claims(self) -> tuple[Claim, ...]:
        """Test the claims of the paper on adjustment; none where nothing was adjusted or continual."""
        return adjustment_claims(
            Evidence(
                scores=self.scores,
                distances=self.distances,
                marks=self.marks,
                encoders=self.encoders,
                mixed=self.mixed,
            )
        )

    def interference_claims(self) -> tuple[Claim, ...]:
        """Test the claims about negative interference that these runs are about, in the order of letters."""
        claims_ = (
            *interference_claims(self.study),
            *gradient_claims(self.conflicts),
            *gate_claims(self.masks.likeness),
        )
        return tuple(sorted(claims_, key=lambda claim: claim.letter))

    def mixup_claims(self) -> tuple[Claim, ...]:
        """Test the claims about X-Mixup; none where it was not scored beside translations."""
        return mixup_claims(MixupEvidence(ways=self.ways, likeness=self.likeness, ratios=self.ratios))

    def originals(self) -> "Findings":
        """Return what is about original encoders and test sets whose inputs come as they are."""
        plain = self.encoders.is_original
        return replace(
            self,
            scores=[row for row in self.scores if plain(row.encoder) and row.corpus not in self.otherwise],
            points=[row for row in self.points if plain(row.encoder)],
            variances=[
                row for row in self.variances if plain(row.encoder) and row.corpus not in self.otherwise
            ],
            deltas=[row for row in self.deltas if plain(row.encoder)],
        )


KEPT_BY_RUNS: tuple[tuple[str, type[Any]], ...] = (
    ("pretrain", PretrainStep),
    ("pretrain", Perplexity),
    ("pretrain", Parameters),
    ("adjust", AdjustStep),
    ("align", Alignment),
    ("fine-tune", Epoch),
)
"""Rows that runs themselves keep, by what a run makes."""


def findings(gathered: Gathered) -> tuple[Findings, list[str]]:
    """Read the rows of every known diagnostic; also say what was left out, and why."""
    notes: list[str] = []

    def read(kind: type[T]) -> list[T]:
        rows, left_out = rows_of(gathered, kind)
        notes.extend(left_out)
        return rows

    scores = read(Score)
    encoders = encoders_of(gathered)
    marks, untested = marks_of(gathered.runs, scores, encoders)
    conflicts, of_conflicts = conflicts_of(gathered)
    masks, of_masks = masks_of(gathered)
    notes.extend([*untested, *of_conflicts, *of_masks])
    mixed, otherwise = mixed_test_sets(gathered), inputs_of(gathered)
    plain = [score for score in scores if score.corpus not in otherwise]
    found = Findings(
        study=study_of(plain, marks, encoders_from_text(gathered.finished("pretrain"))),
        marks=marks,
        encoders=encoders,
        mixed=mixed,
        otherwise=otherwise,
        ways=ways_of(gathered, scores),
        scores=scores,
        points=read(PathPoint),
        plane=read(PlanePoint),
        deltas=read(Delta),
        variances=read(SeedSpread),
        gaps=read(Gap),
        retrieval=read(Retrieval),
        distances=read(Distances),
        bins=read(DistanceBin),
        likeness=read(Likeness),
        maps=read(MapPoint),
        ratios=read(Ratio),
        sweeps=read(SweepPoint),
        conflicts=conflicts,
        masks=masks,
    )
    return found, [*notes, *_left_out_of_runs(gathered)]


def _left_out_of_runs(gathered: Gathered) -> list[str]:
    return [
        note
        for made, row in KEPT_BY_RUNS
        for run in gathered.finished(made)
        for note in run_rows(run, row)[1]
    ]
