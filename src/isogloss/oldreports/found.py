"""What was found, in plain sentences made from the numbers."""

from collections.abc import Collection, Sequence
from statistics import fmean

from isogloss.oldreports.claims import Claim, source_falls, target_gains
from isogloss.oldreports.findings import Findings
from isogloss.oldreports.gather import Gathered
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.rows import PathPoint, Score
from isogloss.oldreports.seeds import in_best_split
from isogloss.oldreports.stages import CONTINUAL
from isogloss.oldreports.words import count, joined, language, percent

WHOSE = ("Of the paper's", "About adjustment: of", "About interference: of", "About X-Mixup: of")
"""How sentences about claims begin: on transfer, on adjustment, on interference, on X-Mixup."""

GAINS = (("target-only", "Trained on the target alone"), ("bilingual", "Trained on both languages"))


def what_was_found(gathered: Gathered, found: Findings, claims: Sequence[Sequence[Claim]]) -> str:
    """Return one paragraph: how far the source carries, what adjusting changes, the claims, what is missing.

    The claims are those about transfer, about adjustment, about interference, and about X-Mixup.
    """
    plain = found.originals()
    about_claims = [
        sentence for some, whose in zip(claims, WHOSE, strict=False) for sentence in _verdicts(some, whose)
    ]
    sentences = [*_transfer(plain.scores), *_path(plain.points), *_adjusted(found), *_continual(plain)]
    sentences += [*about_claims, *_unfinished(gathered)]
    return " ".join(sentences) or "These runs hold no numbers yet."


def _transfer(scores: Sequence[Score]) -> list[str]:
    rows = in_best_split(scores)
    alone = [row for row in rows if row.method == "source-only"]
    targets = [row.score for row in alone if not row.on_source]
    sources = [row.score for row in alone if row.on_source]
    if not targets or not sources:
        return []
    names = joined(language(code) for code in dict.fromkeys("+".join(r.source for r in alone).split("+")))
    splits = joined(dict.fromkeys(row.split for row in alone))
    first = (
        f"Trained on {names} alone, the models score {percent(fmean(sources))} percent on the source "
        f"language and {percent(fmean(targets))} on the targets, a gap of "
        f"{percent(fmean(sources) - fmean(targets))} points ({splits} sets, {_over(alone)})."
    )
    return [first, *_gains(rows)]


def _path(points: Sequence[PathPoint]) -> list[str]:
    """Say what happens on the way from the source-only to the bilingual model."""
    falls, gains = source_falls(points), target_gains(points)
    if not falls or not gains:
        return []
    mean = fmean(gains)
    change = f"{'gains' if mean >= 0 else 'loses'} {percent(abs(mean))} points on average"
    return [
        f"On the straight way from the source-only to the bilingual model, the source score falls by at most "
        f"{percent(max(falls))} points from its best, and the target score {change}."
    ]


def _gains(rows: Sequence[Score]) -> list[str]:
    found = []
    for method, words in GAINS:
        own = [r.score for r in rows if r.method == method and r.on_own_target]
        if own:
            found.append(f"{words}, the target score is {percent(fmean(own))}.")
    return found


def _adjusted(found: Findings) -> list[str]:
    """Say what the largest adjustment of each kind changes in the targets it is about."""
    sentences = []
    names = found.encoders.names(found.encoders.adjusted)
    for one in (group[-1] for group in found.encoders.by_size()):
        ours, theirs = (_means(found, label, one.languages) for label in (one.label, one.base))
        shared = ours.keys() & theirs.keys()
        if shared:
            after, before = (fmean(part[key] for key in sorted(shared)) for part in (ours, theirs))
            name = names[one.label]
            sentences.append(
                f"With the encoder adjusted by {name}, the targets it was adjusted to go from "
                f"{percent(before)} to {percent(after)}."
            )
    return sentences


def _means(found: Findings, encoder: str, languages: Collection[str]) -> dict[tuple[str, ...], float]:
    """Return the source-only scores of an encoder on plain test sets of these targets, mean over seeds."""
    rows = [
        row
        for row in found.scores
        if row.encoder == encoder and row.method == "source-only" and row.corpus not in found.mixed
        if row.language in languages and not row.on_source
    ]
    groups = grouped(
        rows, lambda row: (row.corpus, row.task, row.source, row.split, row.metric, row.language)
    )
    return {key: fmean(row.score for row in own) for key, own in groups.items()}


def _continual(plain: Findings) -> list[str]:
    """Say what continual learning on the original encoder changes in the targets it was made for."""
    sentences = []
    methods = dict.fromkeys(row.method for row in plain.scores if row.method.startswith(CONTINUAL))
    for method in methods:
        own = [row for row in plain.scores if row.method == method and row.on_own_target]
        places = {(r.encoder, r.corpus, r.task, r.source, r.split, r.metric, r.language) for r in own}
        beside = [
            row
            for row in plain.scores
            if row.method == "source-only"
            if (row.encoder, row.corpus, row.task, row.source, row.split, row.metric, row.language) in places
        ]
        if own and beside:
            before, after = (percent(fmean(row.score for row in part)) for part in (beside, own))
            sentences.append(f"Trained by {method}, the targets go from {before} to {after}.")
    return sentences


def _over(rows: Sequence[Score]) -> str:
    tasks = len({(row.corpus, row.task, row.metric) for row in rows})
    encoders = len({row.encoder for row in rows})
    seeds = len({row.seed for row in rows})
    parts = [count(seeds, "seed")]
    parts += [count(tasks, "task")] if tasks > 1 else []
    parts += [count(encoders, "encoder")] if encoders > 1 else []
    return f"mean over {joined(reversed(parts))}"


def _verdicts(claims: Sequence[Claim], whose: str) -> list[str]:
    """Say which claims hold, which do not and which were not tested, if any was."""
    if all(claim.verdict == "not tested" for claim in claims):
        return []
    groups = {
        "supported": "these runs support",
        "refuted": "they refute",
        "not tested": "they do not test",
    }
    parts = []
    for verdict, words in groups.items():
        letters = [f"({claim.letter})" for claim in claims if claim.verdict == verdict]
        if letters:
            parts.append(f"{words} {joined(letters)}")
    return [f"{whose} {count(len(claims), 'claim')}, {joined(parts)}."]


def _unfinished(gathered: Gathered) -> list[str]:
    states = [run.state for run in gathered.runs]
    parts = [
        f"{states.count(state)} {words}"
        for state, words in (
            ("failed", "failed"),
            ("damaged", "left a damaged record"),
            ("missing", "not run yet"),
        )
        if state in states
    ]
    return [f"Of {count(len(states), 'run')}, {joined(parts)}: the numbers are of the rest."] if parts else []
