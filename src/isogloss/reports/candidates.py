"""Candidates to choose among without labels, and the signals of each in every language.

They are the models of a folder that were measured by ``label-free``, for one task and source. How far their
answers agree is read from what they predicted; CKA, retrieval and distances of words count where they were
measured (means over layers).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from statistics import fmean

import numpy as np
import pandas as pd

from isogloss.core.progress import OnProgress, no_progress, one_by_one
from isogloss.metrics.model_choice import (
    Array,
    Decision,
    decide,
    labelled_languages,
    regret,
    rule,
)
from isogloss.reports.comparison import main_scores, model_languages, rows_of
from isogloss.reports.measurements import Measurements, cached
from isogloss.reports.names import name_systems

TEST_SET = ["corpus", "treebank", "task", "source"]

READ_AS = ["inputs", "inputs.translator"]
"""How a candidate reads its inputs: a model in two ways is two candidates."""

ESTIMATES = ("atc", "doc", "agreement")
"""Signals on the scale of scores, whose mean is a candidate's estimate of its own."""

FALLING = ("entropy",)
"""Signals that fall as the score rises."""

KINDS = {
    **dict.fromkeys(("atc", "doc", "confidence", "entropy"), "how sure it is"),
    **dict.fromkeys(("cka", "retrieval", "word-distance"), "how alike the languages' states are"),
}
"""Signals that say much the same, which count as one."""

OF_STATES = {
    "cka": ["cka"],
    "retrieval": ["accuracy_forward", "accuracy_backward"],
    "word-distance": ["auc"],
}
"""Frames about the states of two languages, and the columns whose mean is a signal."""

SOURCE, RANDOM, RULE = "source score", "at random", "the rule"


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """The candidates of one test set, and all that is known of them; arrays are [candidate language]."""

    about: Mapping[str, str]
    """The columns TEST_SET, and the split whose inputs were read."""
    names: tuple[str, ...]
    models: tuple[str, ...]
    """Ids of the runs."""
    languages: tuple[str, ...]
    signals: Mapping[str, Array]
    """Each rising with the score; nan where a candidate has none."""
    estimated: Array
    """[language] what the candidates estimate their mean score to be."""
    scores: Array
    """Scores on the test split; nan where there are no labels."""
    metric: str = ""

    @property
    def ranked(self) -> Array:
        """The rule's value: signals that are of no kind with others are one each."""
        kinds: dict[str, list[Array]] = {}
        for name, signal in self.signals.items():
            kinds.setdefault(KINDS.get(name, name), []).append(signal)
        return rule(kinds.values())

    def decision(self, column: int) -> Decision:
        """Decide for a language by the labels of the others."""
        known = [one for one in labelled_languages(self.ranked, self.scores) if one != column]
        return decide(self.ranked, self.estimated, self.scores, column, known)

    def regrets(self) -> dict[str, list[float]]:
        """Return the regret in each language with labels, by what chose: the rule, each signal, chance.

        Of candidates that are equal by a signal it is the mean.
        """
        found: dict[str, list[float]] = {}
        ranked = self.ranked
        for column in labelled_languages(ranked, self.scores):
            there = ~np.isnan(ranked[:, column])
            by = {RULE: [int(np.nanargmax(ranked[:, column]))]}
            by |= {name: _best(one[:, column], there) for name, one in self.signals.items()}
            for name, choices in by.items():
                if choices:
                    lost = [regret(self.scores, column, choice, there) for choice in choices]
                    found.setdefault(name, []).append(fmean(lost))
            own = self.scores[there, column]
            found.setdefault(RANDOM, []).append(float(own.max() - own.mean()))
        return found


def _best(values: Array, there: Array) -> list[int]:
    """Return the candidates with the highest value, equal but for rounding; none where one has no value."""
    if np.isnan(values[there]).any():
        return []
    near = values.round(9)
    return np.flatnonzero(there & (near == near[there].max())).tolist()


@cached
def all_candidates(m: Measurements, on_progress: OnProgress = no_progress) -> list[Candidates]:
    """Return the candidates of every test set where two or more were measured in some target language."""
    rows = m.frame("label-free")
    if rows.empty:
        return []
    rows = name_systems(rows[rows["source"] != ""], m.labels)
    rows = rows.assign(candidate=_candidate(rows))
    rows = rows.sort_values(["name", "seed", "candidate"], kind="stable")
    found, by = [], [*TEST_SET, "split"]
    for key, own in rows.groupby(by):
        about = dict(zip(by, key, strict=True))
        targets = model_languages(own[~own["language"].isin(about["source"].split("+"))])
        if (targets.groupby("language")["candidate"].nunique() > 1).any():
            found.append(_candidates(m, about, own, targets, on_progress))
    return found


def _candidate(rows: pd.DataFrame) -> "pd.Series[str]":
    """Return a text for each row, equal where model and inputs are."""
    return rows["model"].str.cat([rows[name].astype(str) for name in READ_AS], sep=" ")


def _candidates(
    m: Measurements,
    about: Mapping[str, str],
    rows: pd.DataFrame,
    targets: pd.DataFrame,
    on_progress: OnProgress,
) -> Candidates:
    each = rows.drop_duplicates("candidate")
    keys = [*each["candidate"]]
    codes = tuple(sorted({*targets["language"]}))

    def array(frame: pd.DataFrame, value: str) -> Array:
        wide = frame.pivot_table(index="candidate", columns="language", values=value, aggfunc="mean")
        return np.asarray(wide.reindex(index=keys, columns=list(codes)), dtype=np.float64)

    signals = {name: array(own, "value") for name, own in targets.groupby("signal") if name != "score"}
    there = ~np.isnan(signals["confidence"])
    own_score = rows[rows["signal"] == "score"].groupby("candidate")["value"].mean().reindex(keys)
    signals[SOURCE] = np.where(there, own_score.to_numpy(dtype=np.float64)[:, None], np.nan)
    signals["agreement"] = _agreement(m, targets, keys, codes, on_progress)
    for name, frame in _of_states(m, each, about["source"].split("+")).items():
        signals[name] = np.where(there, array(frame, name), np.nan)
    signals = {name: -one if name in FALLING else one for name, one in signals.items()}
    scores, metric = _scores(m, about, keys)
    return Candidates(
        about=about,
        names=_names(each),
        models=tuple(each["model"]),
        languages=codes,
        signals={name: one for name, one in signals.items() if not np.isnan(one).all()},
        estimated=_level([signals[name] for name in ESTIMATES if name in signals], len(codes)),
        scores=np.where(there, array(scores, "score"), np.nan),
        metric=metric,
    )


def _names(each: pd.DataFrame) -> tuple[str, ...]:
    """Name each candidate: its system, and its seeds where systems have several."""
    if not each["name"].duplicated().any():
        return tuple(each["name"])
    seeds = {"seed": each["seed"], "pretraining seed": each["encoder.seed"]}
    told = [
        [f"{name} {number}" for name, number in zip(seeds, numbers, strict=True) if not pd.isna(number)]
        for numbers in zip(*seeds.values(), strict=True)
    ]
    return tuple(", ".join([name, *own]) for name, own in zip(each["name"], told, strict=True))


def _level(estimates: Sequence[Array], count: int) -> Array:
    """Return the mean of all estimates [language]."""
    found = np.full(count, np.nan)
    for column in range(count):
        own = [one[:, column] for one in estimates]
        values = np.concatenate(own) if own else np.empty(0)
        values = values[~np.isnan(values)]
        if len(values):
            found[column] = values.mean()
    return found


def _scores(m: Measurements, about: Mapping[str, str], keys: Sequence[str]) -> tuple[pd.DataFrame, str]:
    """Return the candidates' scores by the task's metric on the best split, and the metric."""
    scores = rows_of(m.frame("scores"), {name: about[name] for name in TEST_SET})
    scores = main_scores(scores) if len(scores) else scores
    keyed = scores.assign(candidate=_candidate(scores) if len(scores) else [])
    keyed = keyed[keyed["candidate"].isin(keys)]
    return keyed, str(keyed["metric"].iloc[0]) if len(keyed) else ""


def _of_states(m: Measurements, each: pd.DataFrame, sources: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Return CKA, retrieval and AUC of words between source and language, a mean for each candidate."""
    found = {}
    for frame, columns in OF_STATES.items():
        rows = m.frame(frame)
        rows = rows[rows["first"].isin(sources) & rows["model"].isin(each["model"])]
        if len(rows):
            own = rows[["model", "second"]].set_axis(["model", "language"], axis=1)
            own[frame] = rows[columns].astype(float).mean(axis=1)
            means = own.groupby(["model", "language"], as_index=False)[frame].mean()
            found[frame] = each[["candidate", "model"]].merge(means, on="model")
    return found


def _agreement(
    m: Measurements, rows: pd.DataFrame, keys: Sequence[str], codes: Sequence[str], on_progress: OnProgress
) -> Array:
    """Return how many answers [candidate language] each candidate shares with another, on average."""
    found = np.full((len(keys), len(codes)), np.nan)
    runs = rows.drop_duplicates("candidate").set_index("candidate")["run"]
    kept = {key: m.answers(run) for key, run in one_by_one([*runs.items()], "answers", on_progress)}
    places = {key: place for place, key in enumerate(keys)}
    for code, own in rows.groupby("language"):
        answers = {places[key]: kept[key][code] for key in own["candidate"].unique() if code in kept[key]}
        for place, share in shared_answers(answers).items():
            found[place, codes.index(code)] = share
    return found


def shared_answers(answers: Mapping[int, Mapping[str, str]]) -> dict[int, float]:
    """Return for each candidate the mean share of equal answers with every other, by unit.

    ``answers`` are by example's id, as JSON; labels of words count each. Only examples count that all have.
    """
    if len(answers) < 2:
        return {}
    ids = sorted(set.intersection(*(set(own) for own in answers.values())))
    if not ids:
        return {}
    units = {place: [_units(own[one]) for one in ids] for place, own in answers.items()}
    sizes = {tuple(map(len, own)) for own in units.values()}
    if len(sizes) > 1 or not all(map(all, sizes)):
        # All candidates label the same words, but sets of labels differ in size: a set is one answer.
        units = {place: [[own[one]] for one in ids] for place, own in answers.items()}
    _, flat = np.unique([[*chain(*own)] for own in units.values()], return_inverse=True)
    table = dict(zip(units, flat.reshape(len(units), -1), strict=True))
    sums = dict.fromkeys(units, 0.0)
    for one, other in combinations(units, 2):
        share = float((table[one] == table[other]).mean())
        sums[one] += share
        sums[other] += share
    return {place: total / (len(units) - 1) for place, total in sums.items()}


def _units(text: str) -> Sequence[str]:
    """Return the parts that are compared: labels, a word's head and relation, or the whole answer."""
    answer = json.loads(text)
    if isinstance(answer, dict) and all(isinstance(one, list) for one in answer.values()):
        columns = [*filter(None, answer.values())]  # A predicted tree has no tags.
        answer = [*zip(*columns, strict=True)] if len({*map(len, columns)}) == 1 else answer
    return [*map(json.dumps, answer)] if isinstance(answer, list) else [text]
