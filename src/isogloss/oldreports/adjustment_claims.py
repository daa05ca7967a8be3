"""The claims of the paper on cross-lingual adjustment, each tested on the rows at hand.

Paper: "The Impact of Cross-Lingual Adjustment of Contextual Word Representations on Zero-Shot Transfer",
Sections 5.1 to 5.4. A gain counts where a test says that it is more than chance: the rule of ``is_a_gain``.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from isogloss.metrics.correlation import spearman
from isogloss.metrics.significance import paired_t_test
from isogloss.oldreports.adjusted import Adjusted, Encoders
from isogloss.oldreports.claims import Claim, Verdict
from isogloss.oldreports.comparison import LEVEL, Comparison
from isogloss.oldreports.gains import RULE, gains_text, is_a_gain
from isogloss.oldreports.kept_scores import Label, Place
from isogloss.oldreports.marks import PLAIN, Marks
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.rows import Distances, Score
from isogloss.oldreports.seeds import in_best_split
from isogloss.oldreports.stages import CONTINUAL

HOW = "cross-lingual-adjustment"
"""The paper's way of adjusting; the claims are about no other."""

GAINING, NOT_GAINING = ("nli", "ner"), "qa"
"""(f), (g) The tasks that adjustment helps, and the one it does not."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What the claims are tested on."""

    scores: Sequence[Score]
    distances: Sequence[Distances]
    marks: Marks
    encoders: Encoders
    mixed: Mapping[str, str] = field(default_factory=dict)
    """Test sets whose inputs are partly in the source language, each with the plain one beside it."""

    @property
    def largest(self) -> list[Adjusted]:
        """The encoder of each of the paper's adjustments that saw the most translations."""
        return [group[-1] for group in self.encoders.by_size() if group[-1].last.how == HOW]

    @property
    def asked(self) -> bool:
        """Tell whether there is anything these claims are about."""
        return bool(self.encoders.adjusted) or any(map(_is_continual, {one.method for one in self.scores}))

    def places(self) -> set[Place]:
        """Return where claims look: plain test sets by their task's own metric, one split each, targets."""
        plain = [one for one in self.scores if one.corpus not in self.mixed and not one.on_source]
        return {
            Place(one.corpus, one.task, one.source, one.split, one.metric, one.language)
            for one in in_best_split(plain)
        }


def adjustment_claims(evidence: Evidence) -> tuple[Claim, ...]:
    """Test all five claims; none where no encoder was adjusted and no model is continual."""
    if not evidence.asked:
        return ()
    return (
        adjustment_helps(evidence),
        more_text_more_gain(evidence),
        fine_tuning_draws_all_together(evidence),
        continual_keeps_apart(evidence),
        mixed_gains_more(evidence),
    )


def adjustment_helps(evidence: Evidence) -> Claim:
    """Claim (f): adjustment helps NLI and NER, and does not help QA."""
    sentence = "Adjusting the encoder helps zero-shot NLI and NER, but not QA."
    how = (
        f"Source-only on encoders adjusted by {HOW}, with the most translations of each, against "
        f"source-only on the original, in the target languages adjusted to. {RULE} Supported when NLI and "
        f"NER gain, those of them that were measured, and QA does not."
    )
    tests = _adjusted_tests(evidence)
    by_task = {task: tests[task] for task in (*GAINING, NOT_GAINING) if task in tests}
    if not by_task:
        return Claim("f", sentence, _no_tests(evidence), "not tested", how)
    holds = all(is_a_gain(some) == (task != NOT_GAINING) for task, some in by_task.items())
    return Claim("f", sentence, gains_text(by_task), _verdict(holds), how)


def more_text_more_gain(evidence: Evidence) -> Claim:
    """Claim (g): more parallel text, more gain in NLI and NER."""
    sentence = "The more parallel text, the larger the gain in NLI and NER."
    how = (
        "Source-only on the encoder adjusted with the most translations against that with the fewest, in "
        f"the target languages adjusted to. {RULE} Spearman's ρ of the number of translations and the mean "
        "target score, mean over ways. Supported when both tasks gain, those of them that were "
        "measured, with ρ above 0."
    )
    labels = {Label(one.label, PLAIN): one for one in evidence.largest}
    tests = _by_task(_targets(evidence, evidence.marks.growth, labels))
    by_task = {task: tests[task] for task in GAINING if task in tests}
    if not by_task:
        text = "no NLI or NER scores, with predictions, of two sizes"
        return Claim("g", sentence, text, "not tested", how)
    rhos = {task: _rho(evidence, task) for task in by_task}
    holds = all(is_a_gain(some) and rhos[task] > 0 for task, some in by_task.items())
    number = f"{gains_text(by_task)}; " + ", ".join(f"ρ {rho:.2f} ({task})" for task, rho in rhos.items())
    return Claim("g", sentence, number, _verdict(holds), how)


def fine_tuning_draws_all_together(evidence: Evidence) -> Claim:
    """Claim (h): fine-tuning alone draws related and unrelated words together."""
    sentence = "Fine-tuning alone draws related and unrelated words of two languages together."
    how = (
        "Mean distance in the last layer of related and of unrelated words, over pairs of languages and "
        "seeds: the original encoder, and within source-only models. Supported when both fall in every task."
    )
    rows = _last_layer(evidence)
    before = {_pair(row): row for row in rows if not row.task}
    tuned = [row for row in rows if row.task and row.method == PLAIN and _pair(row) in before]
    found, holds = [], True
    for task, own in grouped(tuned, lambda row: row.task).items():
        changes = []
        for name in ("related_mean", "unrelated_mean"):
            first, last = fmean(getattr(before[_pair(row)], name) for row in own), _mean(own, name)
            holds = holds and last < first
            changes.append(f"{name.removesuffix('_mean')} {first:.2f} → {last:.2f}")
        found.append(f"{task}: {', '.join(changes)}")
    if not found:
        return Claim("h", sentence, "no word distances before and after", "not tested", how)
    return Claim("h", sentence, "; ".join(found), _verdict(holds), how)


def continual_keeps_apart(evidence: Evidence) -> Claim:
    """Claim (i): continual learning keeps related and unrelated words apart and helps NLI."""
    sentence = "Continual learning keeps unrelated words apart from related ones, and helps NLI."
    how = (
        "AUC of related against unrelated words within continual models and within source-only models of the "
        "original encoder: apart when higher in every task. NLI: continual against source-only on the "
        f"original, target languages. {RULE} Supported when both hold, refuted when one does not."
    )
    aucs = _auc_pairs(evidence)
    tests = [
        one
        for one in _against_plain(evidence)
        if _is_continual(one.system.method) and one.place.task == "nli" and one.place in evidence.places()
    ]
    parts = [f"AUC {task} {tuned:.3f} fine-tuned, {kept:.3f} continual" for task, tuned, kept in aucs]
    parts += [gains_text({"nli": tests})] if tests else []
    said = [
        *([all(kept > tuned for _, tuned, kept in aucs)] if aucs else []),
        *([_each_gains(tests)] if tests else []),
    ]
    missing = [] if aucs else ["no word distances of continual models"]
    missing += [] if tests else ["no continual NLI models with predictions"]
    verdict: Verdict = "refuted" if not all(said) else "not tested" if missing else "supported"
    return Claim("i", sentence, "; ".join([*parts, *missing]), verdict, how)


def mixed_gains_more(evidence: Evidence) -> Claim:
    """Claim (j): test sets that mix two languages gain more from adjustment."""
    sentence = "Test sets that mix the two languages gain more from the adjustment than plain ones."
    how = (
        f"Gain of source-only on the adjusted encoder (most translations) over the original, mean over the "
        f"target languages adjusted to, with each seed: mixed against plain test set, paired t-test over "
        f"seeds. Supported when the mean is higher with p < {LEVEL}."
    )
    found = [gains for name, plain in evidence.mixed.items() for gains in _both_gains(evidence, name, plain)]
    if len(found) < 2:
        return Claim("j", sentence, "no mixed test set with two seeds or more", "not tested", how)
    mixed, plain = [one for one, _ in found], [one for _, one in found]
    test = paired_t_test(mixed, plain)
    number = (
        f"gain {_points(fmean(mixed))} mixed, {_points(fmean(plain))} plain, p = {test.p_value:.4f}, "
        f"n = {len(found)}"
    )
    return Claim("j", sentence, number, _verdict(fmean(mixed) > fmean(plain) and test.p_value < LEVEL), how)


def _each_gains(tests: Sequence[Comparison]) -> bool:
    """Tell whether each system gains."""
    return all(is_a_gain(some) for some in grouped(tests, lambda one: one.system).values())


def _adjusted_tests(evidence: Evidence) -> dict[str, list[Comparison]]:
    """Return, by task, the tests of the largest adjustments against the original."""
    labels = {Label(one.label, PLAIN): one for one in evidence.largest}
    return _by_task(_targets(evidence, _against_plain(evidence), labels))


def _against_plain(evidence: Evidence) -> list[Comparison]:
    """Return the tests of all systems against source-only on their original."""
    return [
        one
        for (_, system, baseline), one in evidence.marks.pairs().items()
        if baseline == Label(evidence.encoders.base(system.encoder), PLAIN)
    ]


def _targets(
    evidence: Evidence, tests: Iterable[Comparison], labels: Mapping[Label, Adjusted]
) -> list[Comparison]:
    """Keep the tests of these systems in the target languages they were adjusted to."""
    places = evidence.places()
    return [
        one
        for one in tests
        if one.system in labels and one.place in places and one.place.language in labels[one.system].languages
    ]


def _by_task(tests: Iterable[Comparison]) -> dict[str, list[Comparison]]:
    return grouped(tests, lambda one: one.place.task)


def _no_tests(evidence: Evidence) -> str:
    if not evidence.largest:
        return f"no encoder adjusted by {HOW}"
    return "no NLI, NER or QA scores, with predictions, of the original and the adjusted encoder"


def _rho(evidence: Evidence, task: str) -> float:
    """Return Spearman's ρ of translations and the mean target score, mean over ways of adjusting."""
    places, rhos = evidence.places(), []
    for group in evidence.encoders.by_size():
        if len(group) < 2 or group[0].last.how != HOW:
            continue
        sizes, means = [], []
        for one in group:
            own = [
                score.score
                for score in _plain(evidence, one.label, one.languages)
                if score.task == task and _place(score) in places
            ]
            if own:
                sizes.append(float(one.last.translations))
                means.append(fmean(own))
        rho = spearman(sizes, means).rho if len(sizes) > 1 else math.nan
        rhos += [] if math.isnan(rho) else [rho]
    return fmean(rhos) if rhos else 0.0


def _plain(evidence: Evidence, encoder: str, languages: Iterable[str]) -> list[Score]:
    """Return an encoder's source-only scores on these languages but the source."""
    wanted = set(languages)
    return [
        one
        for one in evidence.scores
        if one.encoder == encoder and one.method == PLAIN and one.language in wanted and not one.on_source
    ]


def _place(score: Score) -> Place:
    return Place(score.corpus, score.task, score.source, score.split, score.metric, score.language)


def _both_gains(evidence: Evidence, mixed: str, plain: str) -> list[tuple[float, float]]:
    """Return the gains on a mixed test set and on the plain one, for each adjusted encoder and seed."""
    found = []
    for one in evidence.largest:
        ours = _means(_plain(evidence, one.label, one.languages))
        theirs = _means(_plain(evidence, one.base, one.languages))
        for corpus, *rest in ours:
            keys = [(name, *rest) for name in (mixed, plain)]
            if corpus == mixed and all(key in ours and key in theirs for key in keys):
                found.append((ours[keys[0]] - theirs[keys[0]], ours[keys[1]] - theirs[keys[1]]))
    return found


def _means(scores: Sequence[Score]) -> dict[tuple[object, ...], float]:
    """Return the mean over languages of each test set and seed."""
    groups = grouped(scores, lambda s: (s.corpus, s.task, s.source, s.split, s.metric, s.seed))
    return {key: fmean(one.score for one in own) for key, own in groups.items()}


def _last_layer(evidence: Evidence) -> list[Distances]:
    """Return the distances in the last layer of original encoders and of models on them, L2 if there."""
    rows = [row for row in evidence.distances if evidence.encoders.is_original(row.encoder)]
    last = -1 if any(row.layer == -1 for row in rows) else max((row.layer for row in rows), default=-1)
    kinds = {row.distance for row in rows}
    kind = "l2" if "l2" in kinds else min(kinds, default="")
    return [row for row in rows if row.layer == last and row.distance == kind]


def _pair(row: Distances) -> tuple[str, str, str]:
    return row.encoder, row.first, row.second


def _mean(rows: Sequence[Distances], name: str) -> float:
    return fmean(getattr(row, name) for row in rows)


def _auc_pairs(evidence: Evidence) -> list[tuple[str, float, float]]:
    """Return task, AUC within source-only models, AUC within continual ones; for pairs that have both."""
    rows = _last_layer(evidence)
    found = []
    for task, own in grouped([row for row in rows if row.task], lambda row: row.task).items():
        tuned = [row for row in own if row.method == PLAIN]
        kept = [row for row in own if _is_continual(row.method)]
        shared = {_pair(row) for row in tuned} & {_pair(row) for row in kept}
        if shared:
            means = [fmean(row.auc for row in some if _pair(row) in shared) for some in (tuned, kept)]
            found.append((task, means[0], means[1]))
    return found


def _is_continual(method: str) -> bool:
    return method.startswith(CONTINUAL)


def _verdict(holds: bool) -> Verdict:
    return "supported" if holds else "refuted"


def _points(value: float) -> str:
    return f"{100 * value:+.1f} points".replace("-", "−")
