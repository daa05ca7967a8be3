"""Candidates to choose among without labels, and the signals of each in every language.

They are the models of a folder that were measured by ``label-free``, for one task and source. How far their
answers agree is read from what they predicted; CKA, retrieval and distances of words count where they were
measured (means over layers).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from statistics import fmean

import numpy as np
import pandas as pd

from isogloss.core.progress import OnProgress, no_progress, one_by_one
from isogloss.data.projection.parallel_examples import is_parallel
from isogloss.features.choosing.expected_score import consistency
from isogloss.features.choosing.model_choice import Array, Mask, best, labelled_languages, regret, rule
from isogloss.reports.comparison import main_scores, model_languages, rows_of
from isogloss.reports.frames import split_by
from isogloss.reports.measurements import Measurements, cache_result
from isogloss.reports.names import name_systems
from isogloss.tasks import find_task, task_names
from isogloss.tasks.task import CLASSES

TEST_SET = ["corpus", "treebank", "task", "source"]

READ_AS = ["inputs", "inputs.translator"]
"""Form of a candidate's inputs. A model with two forms is two candidates."""

NO_ENSEMBLE = ("parsing", "qa", "regression", "pair-regression")
"""Tasks whose answers have no probabilities to average (``using.kinds``)."""

FALLING = ("entropy",)
"""Signals that fall as the score rises."""

KINDS = {
    **dict.fromkeys(("atc", "doc", "confidence", "entropy"), "how sure it is"),
    **dict.fromkeys(("cka", "retrieval", "word-distance"), "how similar the languages' states are"),
}
"""Signals that say much the same, which count as one."""

OF_STATES = {"cka": ["cka"], "retrieval": ["accuracy_forward", "accuracy_backward"], "word-distance": ["auc"]}
"""Frames about the states of two languages, and the columns whose mean is a signal."""

Answers = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Answers as JSON by candidate, language and example."""

SOURCE = "source score"
RANDOM = "at random"
RULE = "the rule"


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """The candidates of one test set, with their signals and scores.

    Arrays have the shape (candidate, language).
    """

    about: Mapping[str, str]
    """The columns TEST_SET, and the split whose inputs were read."""
    names: tuple[str, ...]
    models: tuple[str, ...]
    """Ids of the runs."""
    languages: tuple[str, ...]
    signals: Mapping[str, Array]
    """Signals that rise with the score. nan if a candidate lacks a signal."""
    plain: tuple[bool, ...]
    """Whether a candidate reads its inputs unchanged, without translation or mixing."""
    scores: Array
    """Scores on the test split. nan without labels."""
    examples: Array
    """Number of examples that the scores are over. nan without labels."""
    consistency: Array
    """Share of translations to which a candidate gives the label that it gives in the source, by answers to
    parallel examples or as label-consistency measured it. nan where neither is known."""
    pairs: Array
    """Number of translations that the consistency is over. 0 without any."""
    source_examples: tuple[int, ...]
    """Number of examples that each candidate's score in the source is over."""
    metric: str = ""

    @property
    def ranked(self) -> Array:
        """The rule's value: signals that are of no kind with others are one each."""
        kinds: dict[str, list[Array]] = {}
        for name, signal in self.signals.items():
            kinds.setdefault(KINDS.get(name, name), []).append(signal)
        return rule(kinds.values())

    def ensemble(self, column: int) -> tuple[str, ...]:
        """Return the models whose probabilities can be averaged in a language. Empty for fewer than two."""
        is_measured = ~np.isnan(self.ranked[:, column])
        models = [
            model
            for model, is_plain, is_here in zip(self.models, self.plain, is_measured, strict=True)
            if is_plain and is_here
        ]
        distinct = tuple(dict.fromkeys(models))
        return distinct if len(distinct) > 1 and self.about["task"] not in NO_ENSEMBLE else ()

    def regrets(self) -> dict[str, list[float]]:
        """Return the regret in each language with labels, by selection method: rule, signals, chance.

        If candidates are equal by a signal, their mean regret counts.
        """
        regrets: dict[str, list[float]] = {}
        ranking = self.ranked
        for column in labelled_languages(ranking, self.scores):
            is_measured = ~np.isnan(ranking[:, column])
            choices_by_rule = {RULE: [best(ranking, column)]}
            choices_by_rule |= {
                name: _equally_good(values[:, column], is_measured) for name, values in self.signals.items()
            }
            for name, choices in choices_by_rule.items():
                if choices:
                    losses = [regret(self.scores, column, choice, is_measured) for choice in choices]
                    regrets.setdefault(name, []).append(fmean(losses))
            scores = self.scores[is_measured, column]
            regrets.setdefault(RANDOM, []).append(float(scores.max() - scores.mean()))
        return regrets


def _equally_good(values: Array, is_measured: Mask) -> list[int]:
    """Return the candidates with the highest value, up to rounding. Empty if any value is missing."""
    if np.isnan(values[is_measured]).any():
        return []
    rounded_values = values.round(9)
    return np.flatnonzero(is_measured & (rounded_values == rounded_values[is_measured].max())).tolist()


@cache_result
def all_candidates(measurements: Measurements, on_progress: OnProgress = no_progress) -> list[Candidates]:
    """Return the candidates of every test set where two or more were measured in some target language."""
    rows = measurements.frame("label-free")
    if rows.empty:
        return []
    rows = name_systems(rows[rows["source"] != ""], measurements.display_names)
    rows = rows.assign(candidate=_candidate(rows))
    rows = rows.sort_values(["name", "seed", "candidate"], kind="stable")
    candidates = []
    columns = [*TEST_SET, "split"]
    for key, group in split_by(rows, columns):
        test_set = dict(zip(columns, key, strict=True))
        targets = model_languages(group[~group["language"].isin(test_set["source"].split("+"))])
        if (targets.groupby("language")["candidate"].nunique() > 1).any():
            candidates.append(_candidates(measurements, test_set, group, targets, on_progress))
    return candidates


def _candidate(rows: pd.DataFrame) -> "pd.Series[str]":
    """Return a text for each row, equal where model and inputs are."""
    return rows["model"].str.cat(rows[list(READ_AS)].astype(str), sep=" ")


def _candidates(
    measurements: Measurements,
    test_set: Mapping[str, str],
    rows: pd.DataFrame,
    targets: pd.DataFrame,
    on_progress: OnProgress,
) -> Candidates:
    candidates = rows.drop_duplicates("candidate")
    keys = list(candidates["candidate"])
    codes = tuple(sorted(set(targets["language"])))

    def array(frame: pd.DataFrame, value: str) -> Array:
        wide = frame.pivot_table(index="candidate", columns="language", values=value, aggfunc="mean")
        return np.asarray(wide.reindex(index=keys, columns=list(codes)), dtype=np.float64)

    signals = {
        name: array(group, "value") for (name,), group in split_by(targets, ["signal"]) if name != "score"
    }
    is_measured = ~np.isnan(np.stack(list(signals.values()))).all(axis=0)
    source_groups = rows[rows["signal"] == "score"].groupby("candidate")
    own_score = source_groups["value"].mean().reindex(keys)
    source_examples = source_groups["examples"].sum().reindex(keys).fillna(0)
    signals[SOURCE] = np.where(is_measured, own_score.to_numpy(dtype=np.float64)[:, None], np.nan)
    answers = _read_answers(measurements, rows, on_progress)
    signals["agreement"] = _agreement(answers, targets, keys, codes)
    consistencies, pairs = _consistencies(answers, test_set, keys, codes)
    _fill_measured(measurements, test_set, candidates, codes, consistencies, pairs)
    for name, frame in _state_signals(measurements, candidates, test_set["source"].split("+")).items():
        signals[name] = np.where(is_measured, array(frame, name), np.nan)
    signals = {name: -values if name in FALLING else values for name, values in signals.items()}
    scores, metric = _scores(measurements, test_set, keys)
    return Candidates(
        about=test_set,
        names=_names(candidates),
        models=tuple(candidates["model"]),
        languages=codes,
        signals={name: values for name, values in signals.items() if not np.isnan(values).all()},
        plain=tuple(candidates["inputs"].fillna("") == ""),
        scores=np.where(is_measured, array(scores, "score"), np.nan),
        examples=np.where(is_measured, array(scores, "examples"), np.nan),
        consistency=np.where(is_measured, consistencies, np.nan),
        pairs=pairs,
        source_examples=tuple(source_examples.astype(int)),
        metric=metric,
    )


def _names(candidates: pd.DataFrame) -> tuple[str, ...]:
    """Name each candidate: its system, and its seeds where systems have several."""
    if not candidates["name"].duplicated().any():
        return tuple(candidates["name"])
    seeds = {"seed": candidates["seed"], "pretraining seed": candidates["encoder.seed"]}
    number_texts = [
        [
            f"{name} {seed_number}"
            for name, seed_number in zip(seeds, numbers, strict=True)
            if not pd.isna(seed_number)
        ]
        for numbers in zip(*seeds.values(), strict=True)
    ]
    return tuple(
        ", ".join([name, *words]) for name, words in zip(candidates["name"], number_texts, strict=True)
    )


def _scores(
    measurements: Measurements, test_set: Mapping[str, str], keys: Sequence[str]
) -> tuple[pd.DataFrame, str]:
    """Return the candidates' scores by the task's metric on the best split, and the metric."""
    scores = rows_of(measurements.frame("scores"), {name: test_set[name] for name in TEST_SET})
    scores = main_scores(scores) if len(scores) else scores
    score_rows = scores.assign(candidate=_candidate(scores) if len(scores) else [])
    score_rows = score_rows[score_rows["candidate"].isin(keys)]
    return score_rows, str(score_rows["metric"].iloc[0]) if len(score_rows) else ""


def _state_signals(
    measurements: Measurements, candidates: pd.DataFrame, sources: Sequence[str]
) -> dict[str, pd.DataFrame]:
    """Return CKA, retrieval and AUC of words between source and language, a mean for each candidate."""
    signals = {}
    for frame, columns in OF_STATES.items():
        rows = measurements.frame(frame)
        rows = rows[rows["first"].isin(sources) & rows["model"].isin(candidates["model"])]
        if len(rows):
            shared = rows[["model", "second"]].set_axis(["model", "language"], axis=1)
            shared[frame] = rows[columns].astype(float).mean(axis=1)
            means = shared.groupby(["model", "language"], as_index=False)[frame].mean()
            signals[frame] = candidates[["candidate", "model"]].merge(means, on="model")
    return signals


def _read_answers(measurements: Measurements, rows: pd.DataFrame, on_progress: OnProgress) -> Answers:
    """Read what each candidate answered."""
    runs = rows.drop_duplicates("candidate").set_index("candidate")["run"]
    return {
        str(key): measurements.answers(run)
        for key, run in one_by_one(list(runs.items()), "answers", on_progress)
    }


def _consistencies(
    answers: Answers, test_set: Mapping[str, str], keys: Sequence[str], codes: Sequence[str]
) -> tuple[Array, Array]:
    """Return the consistency of each candidate with the source, and its pairs [candidate language].

    With several sources it is over the pairs with each of them.
    """
    shares = np.full((len(keys), len(codes)), np.nan)
    pairs = np.zeros((len(keys), len(codes)))
    if test_set["task"] not in task_names() or find_task(test_set["task"]).one_answer is not CLASSES:
        return shares, pairs
    for (row, key), (column, code) in product(enumerate(keys), enumerate(codes)):
        labels = [
            (answers[key][source][example], answer)
            for source in test_set["source"].split("+")
            if source in answers[key] and is_parallel(test_set["corpus"], test_set["split"], [source, code])
            for example, answer in answers[key].get(code, {}).items()
            if example in answers[key][source]
        ]
        if labels:
            measured = consistency(*zip(*labels, strict=True))
            shares[row, column] = measured.share
            pairs[row, column] = measured.pairs
    return shares, pairs


def _fill_measured(
    measurements: Measurements,
    test_set: Mapping[str, str],
    candidates: pd.DataFrame,
    codes: Sequence[str],
    shares: Array,
    pairs: Array,
) -> None:
    """Fill in consistencies that were measured on translations (label-consistency), where there are none.

    They are those of candidates that read unchanged inputs. Words count by their sentences.
    """
    rows = measurements.frame("label-consistency")
    rows = rows_of(rows, {name: test_set[name] for name in (*TEST_SET, "split")})
    plain = candidates["inputs"].fillna("") == ""
    index_of = {model: index for index, model in enumerate(candidates["model"]) if plain.iloc[index]}
    for row in rows[rows["model"].isin(index_of) & rows["language"].isin(codes)].to_dict("records"):
        place = index_of[row["model"]], codes.index(row["language"])
        if not pairs[place]:
            shares[place] = row["share"]
            pairs[place] = row["pairs"]


def _agreement(predictions: Answers, rows: pd.DataFrame, keys: Sequence[str], codes: Sequence[str]) -> Array:
    """Return the mean number of answers [candidate language] each candidate shares with others."""
    shares = np.full((len(keys), len(codes)), np.nan)
    index_of = {key: index for index, key in enumerate(keys)}
    for (language_code,), group in split_by(rows, ["language"]):
        answers = {
            index_of[key]: predictions[key][language_code]
            for key in group["candidate"].unique()
            if language_code in predictions[key]
        }
        for index, share in shared_answers(answers).items():
            shares[index, codes.index(language_code)] = share
    return shares


def shared_answers(answers: Mapping[int, Mapping[str, str]]) -> dict[int, float]:
    """Return for each candidate the mean share of equal answers with every other, by unit.

    ``answers`` are by example's id, as JSON; labels of words count each. Only examples count that all have.
    """
    if len(answers) < 2:
        return {}
    ids = sorted(set.intersection(*(set(unit_answers_by_id) for unit_answers_by_id in answers.values())))
    if not ids:
        return {}
    units = {
        index: [_units(unit_answers_by_id[example]) for example in ids]
        for index, unit_answers_by_id in answers.items()
    }
    sizes = {tuple(len(answers) for answers in unit_answers) for unit_answers in units.values()}
    if len(sizes) > 1 or not all(all(size) for size in sizes):
        # All candidates label the same words, but sets of labels differ in size: a set is one answer.
        units = {
            index: [[unit_answers_by_id[example]] for example in ids]
            for index, unit_answers_by_id in answers.items()
        }
    _, flat = np.unique([list(chain(*unit_answers)) for unit_answers in units.values()], return_inverse=True)
    table = dict(zip(units, flat.reshape(len(units), -1), strict=True))
    sums = dict.fromkeys(units, 0.0)
    for first_unit, second_unit in combinations(units, 2):
        share = float((table[first_unit] == table[second_unit]).mean())
        sums[first_unit] += share
        sums[second_unit] += share
    return {index: total / (len(units) - 1) for index, total in sums.items()}


def _units(text: str) -> Sequence[str]:
    """Return the parts that are compared: labels, a word's head and relation, or the whole answer."""
    answer = json.loads(text)
    if isinstance(answer, dict) and all(isinstance(part, list) for part in answer.values()):
        columns = [column for column in answer.values() if column]  # A predicted tree has no tags.
        answer = list(zip(*columns, strict=True)) if len({len(column) for column in columns}) == 1 else answer
    return [json.dumps(part) for part in answer] if isinstance(answer, list) else [text]
