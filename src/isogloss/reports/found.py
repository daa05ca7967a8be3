"""What was found, in plain sentences made from the numbers."""

from collections.abc import Sequence
from statistics import fmean

from isogloss.reports.claims import Claim, source_falls, target_gains
from isogloss.reports.gather import Gathered
from isogloss.reports.rows import PathPoint, Score
from isogloss.reports.sections import Findings
from isogloss.reports.seeds import best_split
from isogloss.reports.words import count, joined, language, percent

GAINS = (("target-only", "Trained on the target alone"), ("bilingual", "Trained on both languages"))


def what_was_found(gathered: Gathered, found: Findings, claims: Sequence[Claim]) -> str:
    """Return one paragraph: how far the source carries, what the claims came to, what is missing."""
    about_claims = _verdicts(claims) if any(claim.verdict != "not tested" for claim in claims) else []
    sentences = [*_transfer(found.scores), *_path(found.points), *about_claims, *_unfinished(gathered)]
    return " ".join(sentences) or "These runs hold no numbers yet."


def _transfer(scores: Sequence[Score]) -> list[str]:
    split = best_split([score.split for score in scores])
    rows = [score for score in scores if score.split == split]
    alone = [row for row in rows if row.method == "source-only"]
    targets = [row.score for row in alone if not row.on_source]
    sources = [row.score for row in alone if row.on_source]
    if not targets or not sources:
        return []
    names = joined(language(code) for code in dict.fromkeys("+".join(r.source for r in alone).split("+")))
    first = (
        f"Trained on {names} alone, the models score {percent(fmean(sources))} percent on the source "
        f"language and {percent(fmean(targets))} on the targets, a gap of "
        f"{percent(fmean(sources) - fmean(targets))} points ({split} sets, {_over(alone)})."
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


def _over(rows: Sequence[Score]) -> str:
    tasks = len({(row.corpus, row.task, row.metric) for row in rows})
    encoders = len({row.encoder for row in rows})
    seeds = len({row.seed for row in rows})
    parts = [count(seeds, "seed")]
    parts += [count(tasks, "task")] if tasks > 1 else []
    parts += [count(encoders, "encoder")] if encoders > 1 else []
    return f"mean over {joined(reversed(parts))}"


def _verdicts(claims: Sequence[Claim]) -> list[str]:
    """Say which claims hold, which do not and which were not tested."""
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
    return [f"Of the paper's {count(len(claims), 'claim')}, {joined(parts)}."] if parts else []


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
