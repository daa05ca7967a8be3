"""The claims of the paper on X-Mixup, each tested on the rows at hand.

Yang et al. (2022), "Enhancing Cross-lingual Transfer by Manifold Mixup", Sections 5 and 6: Tables 1, 2, 5, 6.
Letters go on from those of the other papers.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from isogloss.metrics.correlation import spearman
from isogloss.metrics.significance import paired_t_test
from isogloss.oldreports.claims import Claim, Verdict
from isogloss.oldreports.comparison import LEVEL
from isogloss.oldreports.kept_scores import Label, Place
from isogloss.oldreports.likeness import likeness_correlations
from isogloss.oldreports.marks import PLAIN
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.rows import Likeness, Ratio
from isogloss.oldreports.seeds import in_best_split
from isogloss.oldreports.ways import (
    BY,
    HOW,
    PAIRED,
    TRANSLATE_TRAIN,
    MeanComparison,
    Ways,
    place_of,
    plain_reference,
    translator,
)

NAME = "x-mixup"

ABLATIONS = ("ratio=0.0", "learned_ratio=False", "schedule=False", "mse=0.0", "kl=0.0")
"""What is left out, as methods are named in tables (Table 5)."""

FLAT = 0.001
"""(v) A smaller standard deviation over examples is no spread: λ is one number to two digits."""

_NOISE = re.compile(r"noise=([0-9.e-]+)")

MEANS = (
    f"On the mean of the target languages; above means p < {LEVEL} by one test over examples, averaged over "
    "seeds, what is parallel being one example."
)


@dataclass(frozen=True, kw_only=True)
class MixupEvidence:
    """What the claims are tested on."""

    ways: Ways
    likeness: Sequence[Likeness] = field(default_factory=tuple)
    ratios: Sequence[Ratio] = field(default_factory=tuple)

    def boards(self) -> list[tuple[Place, str, list[str]]]:
        """Return the test sets that X-Mixup was scored on, with encoder and methods; one split each."""
        own = [one for one in in_best_split(self.ways.scores) if one.source]
        groups = grouped(own, lambda one: (place_of(one), one.encoder))
        found = [
            (place, encoder, list(dict.fromkeys(one.method for one in group)))
            for (place, encoder), group in groups.items()
        ]
        return [one for one in found if any(map(is_whole, one[2]))]


@dataclass(frozen=True)
class Part:
    """One task's share of a claim: what was found, and whether it holds; None where it cannot be tested."""

    said: str
    holds: bool | None


def mixup_claims(evidence: MixupEvidence) -> tuple[Claim, ...]:
    """Test all six claims; none where no model of X-Mixup was scored beside translations."""
    if not evidence.boards():
        return ()
    return (
        mixup_is_above(evidence),
        likeness_rises(evidence),
        likeness_goes_with_transfer(evidence),
        each_ablation_loses(evidence),
        unseen_languages_gain(evidence),
        ratios_differ(evidence),
    )


def is_whole(method: str) -> bool:
    """Tell whether a system is X-Mixup with nothing left out, beside translations."""
    return _is_mixup(method) and method.endswith(f"{HOW}{PAIRED}") and not _left_out(method)


def mixup_is_above(evidence: MixupEvidence) -> Claim:
    """Claim (q): X-Mixup above translate-train above zero-shot."""
    sentence = "On the targets X-Mixup is above translate-train, and translate-train above zero-shot."
    how = f"{MEANS} X-Mixup reads inputs beside their translations. Supported when both hold in every task."
    parts = []
    for place, encoder, methods in evidence.boards():
        for whole in filter(is_whole, methods):
            plain = plain_reference(whole, methods)
            if not plain.startswith(TRANSLATE_TRAIN) or PLAIN not in methods:
                parts.append(Part(f"{place.task}: translate-train or source-only is missing", None))
                continue
            steps = [
                *evidence.ways.means(place, Label(encoder, plain), [Label(encoder, whole)]),
                *evidence.ways.means(place, Label(encoder, PLAIN), [Label(encoder, plain)]),
            ]
            parts.append(_all_above(f"{place.task}{_who(whole)}", steps, 2))
    return _claim("q", sentence, parts, how)


def each_ablation_loses(evidence: MixupEvidence) -> Claim:
    """Claim (t): whatever is left out is missed."""
    sentence = "X-Mixup loses when any of its parts is left out."
    how = f"{MEANS} Against the whole, paired; supported when each ablation measured is below it so."
    parts = []
    for place, encoder, methods in evidence.boards():
        for whole in filter(is_whole, methods):
            unmixed = whole.removesuffix(f"{HOW}{PAIRED}")
            left = [one for one in methods if one == unmixed or _ablates(one, whole)]
            tests = evidence.ways.means(place, Label(encoder, whole), [Label(encoder, one) for one in left])
            said = [f"{_short(one.system.method, unmixed)} {_points(one)}" for one in tests]
            holds = all(one.is_significant and one.difference < 0 for one in tests) if tests else None
            parts.append(Part(f"{place.task}{_who(whole)}: {', '.join(said) or 'no ablations'}", holds))
    return _claim("t", sentence, parts, how)


def unseen_languages_gain(evidence: MixupEvidence) -> Claim:
    """Claim (u): languages that no translation was in gain too."""
    sentence = "Languages without any translation in training gain from X-Mixup too."
    how = (
        "Mean of the languages that no model was made for, over them and over models, with each seed: "
        f"X-Mixup, paired, against source-only; paired t-test over seeds. Supported when higher with "
        f"p < {LEVEL} in every task."
    )
    parts = []
    for place, encoder, methods in evidence.boards():
        targets = evidence.ways.languages(place)
        plain = _unseen(evidence, place, Label(encoder, PLAIN), targets)
        for whole in filter(is_whole, methods):
            ours = _unseen(evidence, place, Label(encoder, whole), targets)
            about = f"{place.task}{_who(whole)}"
            parts.append(_over_seeds(about, ours, plain, "no unseen language was scored paired"))
    return _claim("u", sentence, parts, how)


def likeness_rises(evidence: MixupEvidence) -> Claim:
    """Claim (r): X-Mixup draws languages together."""
    sentence = "CKA of the source and a target language is higher within X-Mixup models."
    how = (
        "Linear CKA in the last layer measured, mean over the targets each model was made for, with each "
        f"seed: X-Mixup against source-only; paired t-test over seeds. Supported when higher with "
        f"p < {LEVEL} in every task."
    )
    parts = []
    top = max((row.layer for row in evidence.likeness), default=0)
    rows = [row for row in evidence.likeness if row.layer == top and row.cka is not None]
    groups = grouped((row for row in rows if row.method), lambda row: (row.corpus, row.task, row.encoder))
    for (_, task, _), group in groups.items():
        own = [row for row in group if row.second in row.target.split("+")]
        for method in dict.fromkeys(row.method for row in own if _is_mixup(row.method)):
            if _left_out(method):
                continue
            ours = [row for row in own if row.method == method]
            codes = {row.second for row in ours}
            theirs = [row for row in group if row.method == PLAIN and row.second in codes]
            before = [row.cka or 0.0 for row in rows if not row.method and row.second in codes]
            about = f"{task}{_who(method)}" + (f" (encoder {fmean(before):.3f})" if before else "")
            values = _by_seed(ours), _by_seed(theirs)
            parts.append(_over_seeds(about, *values, "no CKA of source-only", digits=3, scale=1))
    return _claim("r", sentence, parts or [Part("no CKA within models of X-Mixup", None)], how)


def likeness_goes_with_transfer(evidence: MixupEvidence) -> Claim:
    """Claim (s): the likelier the states, the better the transfer."""
    sentence = "The higher its CKA with the source, the better a language is transferred to."
    how = (
        "Spearman's ρ over languages of CKA in the last layer measured within source-only models and their "
        f"score. Supported when above 0 with p < {LEVEL} in every task."
    )
    plain = [one for one in evidence.ways.scores if one.method == PLAIN]
    rows = likeness_correlations(evidence.likeness, plain)
    top = max((row.layer for row in rows), default=0)
    main = {(place.task, place.measure) for place, _, _ in evidence.boards()}
    parts = [
        Part(
            f"{row.task}: ρ {row.rho:.2f}, p = {row.p_value:.4f}, {row.points} languages",
            _goes(row.rho, row.p_value),
        )
        for row in rows
        if row.layer == top and row.states == "model" and (row.task, row.metric) in main
    ]
    return _claim("s", sentence, parts or [Part("CKA and scores of fewer than three languages", None)], how)


def ratios_differ(evidence: MixupEvidence) -> Claim:
    """Claim (v): the ratio is each example's own."""
    sentence = "The mixing ratio is another for each example."
    how = (
        f"Standard deviation of λ over examples, mean over seeds and targets. Supported when above {FLAT} in "
        "every task. With several amounts of noise: Spearman's ρ of noise and mean λ, which the verdict does "
        "not depend on."
    )
    parts = []
    own = [row for row in evidence.ratios if row.std is not None and not _left_out(row.method)]
    for task, rows in grouped(own, lambda row: row.task).items():
        std, mean = fmean(row.std or 0.0 for row in rows), fmean(row.mean for row in rows)
        said = f"{task}: λ {mean:.3f}, std {std:.4f}{_noise(rows)}"
        parts.append(Part(said, std > FLAT))
    return _claim("v", sentence, parts or [Part("no mixing ratios", None)], how)


def _noise(rows: Sequence[Ratio]) -> str:
    """Write how λ goes with the noise of translators, where there are three or more."""
    found = [(float(noise[1]), row.mean) for row in rows if (noise := _NOISE.search(row.method))]
    means = {
        noise: fmean(mean for _, mean in own) for noise, own in grouped(found, lambda one: one[0]).items()
    }
    if len(means) < 3:
        return ""
    curve = ", ".join(f"{noise:g}: {means[noise]:.3f}" for noise in sorted(means))
    rho = spearman(list(means), list(means.values())).rho
    return f" (by noise {curve}; ρ {'–' if math.isnan(rho) else f'{rho:.2f}'})"


def _unseen(evidence: MixupEvidence, place: Place, system: Label, targets: Sequence[str]) -> dict[int, float]:
    rows = [
        one
        for one in evidence.ways.scores
        if place_of(one) == place and Label(one.encoder, one.method) == system
        if one.language not in targets and not one.on_source
    ]
    return {seed: fmean(one.score for one in own) for seed, own in grouped(rows, lambda s: s.seed).items()}


def _by_seed(rows: Iterable[Likeness]) -> dict[int, float]:
    groups = grouped(rows, lambda row: row.seed or 0)
    return {seed: fmean(row.cka or 0.0 for row in own) for seed, own in groups.items()}


def _over_seeds(
    about: str,
    ours: dict[int, float],
    theirs: dict[int, float],
    missing: str,
    *,
    digits: int = 1,
    scale: float = 100,
) -> Part:
    """Test ours above theirs over the seeds both have."""
    seeds = sorted(ours.keys() & theirs.keys())
    if len(seeds) < 2:
        return Part(f"{about}: {missing if not seeds else 'one seed'}", None)
    x, y = [ours[seed] for seed in seeds], [theirs[seed] for seed in seeds]
    test = paired_t_test(x, y)
    said = (
        f"{about}: {scale * fmean(x):.{digits}f} against {scale * fmean(y):.{digits}f}, "
        f"p = {test.p_value:.4f}, n = {len(seeds)}"
    )
    return Part(said, fmean(x) > fmean(y) and test.p_value < LEVEL)


def _all_above(about: str, tests: Sequence[MeanComparison], wanted: int) -> Part:
    if len(tests) < wanted:
        return Part(f"{about}: no predictions of all targets", None)
    said = ", ".join(
        f"{_plain(one.system.method)} {_points(one)} on {_plain(one.baseline.method)}" for one in tests
    )
    return Part(f"{about}: {said}", all(one.is_significant and one.difference > 0 for one in tests))


def _claim(letter: str, sentence: str, parts: Sequence[Part], how: str) -> Claim:
    """Refute where one part fails, support where all hold, and leave it open where one is missing."""
    known = [part.holds for part in parts]
    verdict: Verdict = (
        "refuted" if False in known else "supported" if known and None not in known else "not tested"
    )
    return Claim(letter, sentence, "; ".join(part.said for part in parts), verdict, how)


def _is_mixup(method: str) -> bool:
    return re.match(rf"{NAME}(?= \(|{BY}|{HOW}|$)", method) is not None


def _settings(method: str) -> list[str]:
    """Return what is not the default in a method, as its name says."""
    inside = re.match(rf"{NAME} \(([^)]*)\)", method)
    return inside[1].split(", ") if inside else []


def _left_out(method: str) -> list[str]:
    return [one for one in _settings(method) if one in ABLATIONS]


def _ablates(method: str, whole: str) -> bool:
    """Tell whether a system is another one with something left out, and nothing else changed."""
    fields = {one.partition("=")[0] for one in _left_out(method)}
    if "schedule" in fields:
        fields |= {"decay", "sampling"}  # How it went says nothing where there is none.
    rest, others = (
        [one for one in _settings(system) if one.partition("=")[0] not in fields]
        for system in (method, whole)
    )
    return (
        _is_mixup(method)
        and method.endswith(f"{HOW}{PAIRED}")
        and bool(fields)
        and rest == others
        and translator(method) == translator(whole)
    )


def _short(method: str, unmixed: str) -> str:
    return "unmixed at inference" if method == unmixed else " ".join(_left_out(method))


def _plain(method: str) -> str:
    return re.split(rf" \(|{BY}|{HOW}", method)[0]


def _who(method: str) -> str:
    by, settings = translator(method), _settings(method)
    return (f" ({', '.join(settings)})" if settings else "") + (f" by {by}" if by else "")


def _points(one: MeanComparison) -> str:
    text = f"{100 * one.difference:+.1f}".replace("-", "−")
    return f"{text}{'*' if one.is_significant else ''}"


def _goes(rho: float, p_value: float) -> bool:
    return rho > 0 and p_value < LEVEL
