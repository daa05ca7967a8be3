"""Test sets with the systems scored on them, and the table of scores: systems down, test languages across.

One table serves every use of scores: methods side by side (X-Mixup, Table 1), adjusted encoders and the
original ("The Impact of Cross-Lingual Adjustment …", Tables 2 to 4), encoders with and without modules ("On
Negative Interference …", Table 2). Systems are compared to references, significant differences are marked.
"""

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeVar

import pandas as pd

from isogloss.core.progress import OnProgress, no_progress, one_by_one
from isogloss.reports.checks import UNITS
from isogloss.reports.comparison import (
    SYSTEM,
    TEST_SET,
    Comparison,
    best_split,
    compare,
    holm_corrected,
    model_languages,
    unit_of,
)
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import (
    count,
    name_systems,
)

GAP = "gap"

MEAN, UNSEEN = "mean of targets", "unseen"

IN_TRANSLATION = ("paired", "translated")
"""Translated inputs are the same test set; other changes of the inputs make another one."""

ALIKE = ("encoder", "method", "auxiliary", "after.method", "inputs", "inputs.translator", "translator")
"""Facts that a model of which a part was trained shares with the one all of which was."""

USE_TRANSLATIONS = ("translate-train", "x-mixup", "consistency")
"""Methods that train on translations of any origin."""

Facts = Mapping[str, Any]
"""The facts of a system, by column."""

Key = tuple[str, ...]
"""A system: the values of the columns SYSTEM."""

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, kw_only=True)
class ScoredSet:
    """The scores of one table: by one metric, of models of one source, on one test set."""

    about: Mapping[str, str]
    """The columns TEST_SET, and ``mixed``."""
    rows: pd.DataFrame
    """Scores on the models' languages, with names of systems, and whether the split is the ``best``."""
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    """Languages that models or adjusted encoders were made for; without any, all but the sources."""
    unseen: tuple[str, ...]
    unit: str

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns that can be tested, by name, each with the languages that it averages."""
        columns = {code: (code,) for code in (*self.sources, *self.targets, *self.unseen)}
        means = {MEAN: self.targets, UNSEEN: self.unseen}
        return columns | {name: codes for name, codes in means.items() if len(codes) > 1}

    def units_of(self, data: pd.DataFrame) -> str:
        """Return how many units the numbers are means over: "3 seeds", "1 to 3 seeds"."""
        least, most = data["units"].min(), count(data["units"].max(), UNITS[self.unit])
        return most if data["units"].nunique() == 1 else f"{least} to {most}"

    @property
    def systems(self) -> list[Facts]:
        """The facts of each system, in order: references first, adjusted encoders last, by size."""
        facts: list[Facts] = self.rows.drop_duplicates(SYSTEM).to_dict("records")
        joint = _joint(facts)
        return sorted(facts, key=lambda system: _order(system, joint))


def _order(system: Facts, joint: str) -> tuple[bool | float | str | Key, ...]:
    size = float("inf") if pd.isna(system["encoder.size"]) else float(system["encoder.size"])
    encoder = system["encoder"] != joint, system["encoder.adjusted"], size, system["encoder.label"]
    method = system["method"]
    references_first = method != "source-only", method != "translate-train"
    return *encoder, *references_first, method, system["system"], key_of(system)


def key_of(facts: Facts) -> Key:
    """Return the key of a system from its facts."""
    return tuple(str(facts[name]) for name in SYSTEM)


def scored_sets(m: Measurements) -> list[ScoredSet]:
    """Return every test set that models were scored on, in order of corpora.

    A model without a source (target-only) belongs to the test sets of every source.
    """
    scores = m.frame("scores")
    if scores.empty:
        return []
    mixed = scores["inputs"].mask(scores["inputs"].isin(IN_TRANSLATION), "")
    scores = scores.assign(mixed=mixed, best=scores.index.isin(best_split(scores).index))
    scores = scores.sort_values([*SYSTEM, "model", "language"], kind="stable")
    by = ["mixed", *(name for name in TEST_SET if name != "source")]
    test_sets = []
    for key, rows in scores.groupby(by):
        for source in sorted(set(rows["source"]) - {""}) or [""]:
            scored = rows["language"].isin(rows.loc[rows["source"] == source, "language"])
            columns = {**dict(zip(by, key, strict=True)), "source": source}
            test_sets.append(_scored_set(columns, rows[scored & rows["source"].isin([source, ""])], m))
    return sorted(
        (test_set for test_set in test_sets if len(test_set.rows)),
        key=lambda test_set: [*test_set.about.values()],
    )


def _scored_set(columns: Mapping[str, str], rows: pd.DataFrame, m: Measurements) -> ScoredSet:
    codes = sorted(rows["language"].unique())
    sources = tuple(code for code in codes if code in columns["source"].split("+"))
    pairs = [pair.split("-") for pairs in rows["encoder.pairs"].unique() for pair in pairs.split("+")]
    made_for = {code for parts in (*rows["target"].str.split("+"), *pairs) for code in parts}
    others = [code for code in codes if code not in sources]
    targets = tuple(code for code in others if code in made_for) or tuple(others)
    unseen = tuple(code for code in others if code not in targets)
    # On languages that no model was made for, all models of a system count.
    made_for_none = rows["language"].isin({*others} - made_for)
    rows = model_languages(rows.assign(target=rows["target"].mask(made_for_none, "")))
    return ScoredSet(
        about={name: columns[name] for name in (*TEST_SET, "mixed")},
        rows=name_systems(rows, m.labels),
        sources=sources,
        targets=targets,
        unseen=unseen,
        unit=unit_of(rows),
    )


def reference_of(system: Facts, systems: Sequence[Facts]) -> Facts | None:
    """Return the reference of a system, which differs from it in one thing, or None.

    - on an adjusted encoder: the same way of training on the original one;
    - on one of several encoders pretrained here: the same way on the joint one (``_joint``);
    - trained on translations, or reading them: translate-train by the same translator on the same encoder;
    - with a part of the weights trained (LoRA …): the same method with all of them, on the same encoder;
    - with an auxiliary loss, as in continual learning: the same method without it on the same encoder;
    - else, and where that is missing: source-only on the same encoder.
    Of several, the one that shares most fields of translator and optimization; of X-Mixup in tagging one
    whose labels are a teacher's, too.
    """
    base = str(system["encoder.original"]) if system["encoder.adjusted"] else ""
    if system["encoder.kind"] == "pretrain" and not base:
        base = _joint(systems)
    same_way = [other for other in systems if all(other[name] == system[name] for name in SYSTEM[1:])]
    on_base = [other for other in same_way if other["encoder"] == base != system["encoder"]]
    if on_base and not system["auxiliary"]:
        return on_base[0]
    if isinstance(system.get("peft"), str):
        similar = [other for other in systems if all(other.get(name) == system.get(name) for name in ALIKE)]
        if fully_trained := [other for other in similar if "peft" not in _settings(other)]:
            return fully_trained[0]
    in_translation = system["inputs"] in IN_TRANSLATION
    if system["method"] == "source-only" and not in_translation:
        return None
    candidates = [other for other in systems if other["encoder"] == system["encoder"]]
    candidates = [other for other in candidates if other["inputs"] not in IN_TRANSLATION]
    settings, references = (
        _settings(system),
        [other for other in candidates if other["method"] == "source-only"],
    )
    if system["auxiliary"]:
        references = [
            other for other in candidates if other["method"] == system["auxiliary.method"]
        ] or references
    by = settings.get("translator")
    if in_translation or (
        system["method"] != "translate-train" and (by or system["method"] in USE_TRANSLATIONS)
    ):
        trained = [other for other in candidates if other["method"] == "translate-train"]
        references = [other for other in trained if _settings(other).get("translator") == by] or references
        taught = system.get("method.labels") != "projected"
        as_labelled = [other for other in references if (other.get("method.labels") == "teacher") == taught]
        references = (as_labelled if system["method"] == "x-mixup" else []) or references
    return max(
        references,
        key=lambda other: (len(settings.items() & _settings(other).items()), key_of(other)),
        default=None,
    )


def _joint(systems: Sequence[Facts]) -> str:
    """Return the joint encoder: masked language modelling on several languages without modules; "" if none.

    Of several, the one of most languages, uncut text first.
    """
    shared = [
        (
            -len(system["encoder.languages"].split("+")),
            bool(system.get("encoder.lines")),
            str(system["encoder"]),
        )
        for system in systems
        if system["encoder.kind"] == "pretrain"
        and not system["encoder.adjusted"]
        and not system["encoder.modules"]
        if "+" in system["encoder.languages"] and system["encoder.method"] == "masked-language-modelling"
    ]
    return min(shared)[-1] if shared else ""


def _settings(system: Facts) -> dict[str, object]:
    """Return optimization and peft, and the translator of the training data or else of the inputs."""
    parts = ("translator", "optimization", "peft")
    settings = {name: value for name, value in system.items() if name.split(".")[0] in parts}
    settings = {name: value for name, value in settings.items() if not pd.isna(value) and value != ""}
    if "translator" in settings:
        return settings
    return {**settings, **json.loads(system["inputs.translator"] or "{}")}


COMPARED = [*SYSTEM, "seed", "encoder.seed", "run", "language", "metric", "score", "source", "target"]
"""Columns that a comparison needs."""


def tested(
    m: Measurements, scored: ScoredSet, references: Mapping[Key, Key], on_progress: OnProgress = no_progress
) -> dict[tuple[Key, str], Comparison]:
    """Compare every system with its reference in every column, corrected over all of them."""
    rows = {tuple(map(str, key)): group for key, group in scored.rows[COMPARED].groupby(SYSTEM)}
    comparisons = {}
    tests = [*product(references.items(), scored.columns.items())]
    for (system, reference), (column, codes) in one_by_one(tests, "comparisons", on_progress):
        ours, theirs = (rows[key][rows[key]["language"].isin(codes)] for key in (system, reference))
        comparison = compare(m, ours, theirs, unit=scored.unit)
        if comparison is not None and {*comparison.languages} == {*codes}:
            comparisons[system, column] = comparison
    return holm_corrected(comparisons)


def values_of(test_set: ScoredSet) -> pd.DataFrame:
    """Return each system's scores per unit and column, and the gap."""
    values = mean_scores(test_set, test_set.columns)
    sides = mean_scores(test_set, {"high": test_set.sources, "low": test_set.targets})
    values[GAP] = sides["high"] - sides["low"]
    return values[sorted(values, key=lambda name: name == UNSEEN)].dropna(axis=1, how="all")


def mean_scores(test_set: ScoredSet, groups: Mapping[K, Sequence[str]]) -> pd.DataFrame:
    """Return each system's mean over the languages of each group, a row per unit; nan where one is missing.

    The models of one unit are averaged first.
    """
    wide = test_set.rows.groupby([*SYSTEM, test_set.unit, "language"])["score"].mean().unstack("language")
    return pd.DataFrame(
        {name: wide.reindex(columns=list(codes)).mean(axis=1, skipna=False) for name, codes in groups.items()}
    )
