"""Test sets: the scores of one table, their systems, and the reference that each system is compared to."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd

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
from isogloss.reports.names import name_systems

MEAN, UNSEEN = "mean of targets", "unseen"

IN_TRANSLATION = ("paired", "translated")
"""Translated inputs are the same test set; other changes of the inputs make another one."""

USE_TRANSLATIONS = ("translate-train", "x-mixup", "consistency")
"""Methods that train on translations of any origin."""

Facts = Mapping[str, Any]
"""The facts of a system, by column."""

Key = tuple[str, ...]
"""A system: the values of the columns SYSTEM."""


@dataclass(frozen=True, kw_only=True)
class ScoredSet:
    """The scores of one table: by one metric, of models of one source, on one test set."""

    about: Mapping[str, str]
    """The columns TEST_SET, and ``mixed``."""
    rows: pd.DataFrame
    """Scores on the models' languages, with names of systems, and whether the split is the ``best``."""
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    """Languages that models or adjusted encoders were made for; if there are none, all but the sources."""
    unseen: tuple[str, ...]
    unit: str

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns that can be tested, by name, each with the languages that it averages."""
        found = {code: (code,) for code in (*self.sources, *self.targets, *self.unseen)}
        means = {MEAN: self.targets, UNSEEN: self.unseen}
        return found | {name: codes for name, codes in means.items() if len(codes) > 1}

    @property
    def systems(self) -> list[Facts]:
        """The facts of each system, in order: references first, adjusted encoders last, by size."""
        facts: list[Facts] = self.rows.drop_duplicates(SYSTEM).to_dict("records")
        joint = _joint(facts)
        return sorted(facts, key=lambda one: _order(one, joint))


def _order(one: Facts, joint: str) -> tuple[bool | float | str | Key, ...]:
    size = float("inf") if pd.isna(one["encoder.size"]) else float(one["encoder.size"])
    encoder = one["encoder"] != joint, one["encoder.adjusted"], size, one["encoder.label"]
    method = one["method"]
    return (
        *encoder,
        method != "source-only",
        method != "translate-train",
        method,
        one["system"],
        key_of(one),
    )


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
    found = []
    for key, rows in scores.groupby(by):
        for source in sorted(set(rows["source"]) - {""}) or [""]:
            scored = rows["language"].isin(rows.loc[rows["source"] == source, "language"])
            about = {**dict(zip(by, key, strict=True)), "source": source}
            found.append(_scored_set(about, rows[scored & rows["source"].isin([source, ""])], m))
    return sorted(found, key=lambda one: [*one.about.values()])


def _scored_set(about: Mapping[str, str], rows: pd.DataFrame, m: Measurements) -> ScoredSet:
    codes = sorted(rows["language"].unique())
    sources = tuple(code for code in codes if code in about["source"].split("+"))
    pairs = [pair.split("-") for pairs in rows["encoder.pairs"].unique() for pair in pairs.split("+")]
    made_for = {code for parts in (*rows["target"].str.split("+"), *pairs) for code in parts}
    others = [code for code in codes if code not in sources]
    targets = tuple(code for code in others if code in made_for) or tuple(others)
    unseen = tuple(code for code in others if code not in targets)
    # On languages that no model was made for, all models of a system count.
    rows = model_languages(rows.assign(target=rows["target"].mask(rows["language"].isin(unseen), "")))
    return ScoredSet(
        about={name: about[name] for name in (*TEST_SET, "mixed")},
        rows=name_systems(rows, m.labels),
        sources=sources,
        targets=targets,
        unseen=unseen,
        unit=unit_of(rows),
    )


def reference_of(one: Facts, systems: Sequence[Facts]) -> Facts | None:
    """Return the reference of a system, which differs from it in one thing; None where there is none.

    - on an adjusted encoder: the same way of training on the original one;
    - on one of several encoders pretrained here: the same way on the joint one (``_joint``);
    - trained on translations, or reading them: translate-train by the same translator on the same encoder;
    - else, where that is missing, and always for continual: source-only on the same encoder.
    Of several, the one that shares most fields of translator and optimization.
    """
    base = str(one["encoder.original"]) if one["encoder.adjusted"] else ""
    if one["encoder.kind"] == "pretrain" and not base:
        base = _joint(systems)
    same_way = [other for other in systems if all(other[name] == one[name] for name in SYSTEM[1:])]
    on_base = [other for other in same_way if other["encoder"] == base != one["encoder"]]
    if on_base and one["method"] != "continual":
        return on_base[0]
    in_translation = one["inputs"] in IN_TRANSLATION
    if one["method"] == "source-only" and not in_translation:
        return None
    same = [other for other in systems if other["encoder"] == one["encoder"]]
    same = [other for other in same if other["inputs"] not in IN_TRANSLATION]
    own, found = _settings(one), [other for other in same if other["method"] == "source-only"]
    by = own.get("translator")
    if in_translation or (one["method"] != "translate-train" and (by or one["method"] in USE_TRANSLATIONS)):
        trained = [other for other in same if other["method"] == "translate-train"]
        found = [other for other in trained if _settings(other).get("translator") == by] or found
    return max(
        found, key=lambda other: (len(own.items() & _settings(other).items()), key_of(other)), default=None
    )


def _joint(systems: Sequence[Facts]) -> str:
    """Return the joint encoder: masked language modelling on several languages without modules; "" if none.

    Of several, the one of most languages, uncut text first.
    """
    shared = [
        (-len(one["encoder.languages"].split("+")), bool(one.get("encoder.lines")), str(one["encoder"]))
        for one in systems
        if one["encoder.kind"] == "pretrain" and not one["encoder.adjusted"] and not one["encoder.modules"]
        if "+" in one["encoder.languages"] and one["encoder.method"] == "masked-language-modelling"
    ]
    return min(shared)[-1] if shared else ""


def _settings(one: Facts) -> dict[str, object]:
    """Return the optimization, and the translator of the training data or else of the inputs."""
    own = {name: one[name] for name in one if name.split(".")[0] in ("translator", "optimization")}
    own = {name: value for name, value in own.items() if not pd.isna(value) and value != ""}
    return own if "translator" in own else own | json.loads(one["inputs.translator"] or "{}")


COMPARED = [*SYSTEM, "seed", "encoder.seed", "run", "language", "metric", "score", "source", "target"]
"""Columns that a comparison needs."""


def tested(
    m: Measurements, where: ScoredSet, references: Mapping[Key, Key]
) -> dict[tuple[Key, str], Comparison]:
    """Compare every system with its reference in every column, corrected over all of them."""
    rows = {tuple(map(str, key)): own for key, own in where.rows[COMPARED].groupby(SYSTEM)}
    found = {}
    for (system, reference), (column, codes) in product(references.items(), where.columns.items()):
        ours, theirs = (rows[key][rows[key]["language"].isin(codes)] for key in (system, reference))
        one = compare(m, ours, theirs, unit=where.unit)
        if one is not None and {*one.languages} == {*codes}:
            found[system, column] = one
    return holm_corrected(found)
