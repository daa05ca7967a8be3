"""Test sets: the scores one table shows, which systems they are of, and what each system is held against."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd

from isogloss.reports.comparison import (
    PLACE,
    SYSTEM,
    Comparison,
    best_split,
    compare,
    corrected,
    spoken_for,
    unit_of,
)
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import name_systems

MEAN, UNSEEN = "mean of targets", "unseen"

IN_TRANSLATION = ("paired", "translated")
"""Inputs that come in translation test the same sets; what else is done to inputs makes another test set."""

READ_TRANSLATIONS = ("translate-train", "x-mixup", "consistency")
"""Methods that train on translations, whoever made them."""

Key = tuple[str, ...]
"""A system, by the columns SYSTEM."""


@dataclass(frozen=True, kw_only=True)
class ScoredSet:
    """What one table shows: all scores by one measure of models of one source on one test set."""

    about: Mapping[str, str]
    """The columns PLACE, and ``mixed``."""
    rows: pd.DataFrame
    """What models speak for, with the names of systems, and whether the split is the ``best`` measured."""
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    """Languages that models, or adjusted encoders, were made for; all but the sources where none was."""
    unseen: tuple[str, ...]
    unit: str

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns that can be tested, by name, each with the languages it is the mean of."""
        found = {code: (code,) for code in (*self.sources, *self.targets, *self.unseen)}
        means = {MEAN: self.targets, UNSEEN: self.unseen}
        return found | {name: codes for name, codes in means.items() if len(codes) > 1}

    @property
    def systems(self) -> list[Mapping[str, Any]]:
        """The facts of each system: what others are held against first, adjusted encoders last, by size."""
        facts: list[Mapping[str, Any]] = self.rows.drop_duplicates(SYSTEM).to_dict("records")
        joint = _joint(facts)
        return sorted(facts, key=lambda one: _order(one, joint))


def _order(one: Mapping[str, Any], joint: str) -> tuple[Any, ...]:
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


def key_of(facts: Mapping[str, Any]) -> Key:
    """Return which system these are the facts of."""
    return tuple(str(facts[name]) for name in SYSTEM)


def scored_sets(m: Measurements) -> list[ScoredSet]:
    """Return every test set that models were scored on, those of the first corpus first.

    A model without a source (target-only) stands with the models of every source.
    """
    scores = m.frame("scores")
    if scores.empty:
        return []
    mixed = scores["inputs"].mask(scores["inputs"].isin(IN_TRANSLATION), "")
    scores = scores.assign(mixed=mixed, best=scores.index.isin(best_split(scores).index))
    scores = scores.sort_values([*SYSTEM, "model", "language"], kind="stable")
    by = ["mixed", *(name for name in PLACE if name != "source")]
    found = []
    for key, rows in scores.groupby(by):
        for source in sorted(set(rows["source"]) - {""}) or [""]:
            there = rows["language"].isin(rows.loc[rows["source"] == source, "language"])
            about = {**dict(zip(by, key, strict=True)), "source": source}
            found.append(_scored_set(about, rows[there & rows["source"].isin([source, ""])], m))
    return sorted(found, key=lambda one: [*one.about.values()])


def _scored_set(about: Mapping[str, str], rows: pd.DataFrame, m: Measurements) -> ScoredSet:
    there = sorted(rows["language"].unique())
    sources = tuple(code for code in there if code in about["source"].split("+"))
    pairs = [pair.split("-") for pairs in rows["encoder.pairs"].unique() for pair in pairs.split("+")]
    made_for = {code for parts in (*rows["target"].str.split("+"), *pairs) for code in parts}
    others = [code for code in there if code not in sources]
    targets = tuple(code for code in others if code in made_for) or tuple(others)
    unseen = tuple(code for code in others if code not in targets)
    # On languages that no model was made for, all models of a system count.
    rows = spoken_for(rows.assign(target=rows["target"].mask(rows["language"].isin(unseen), "")))
    return ScoredSet(
        about={name: about[name] for name in (*PLACE, "mixed")},
        rows=name_systems(rows, m.labels),
        sources=sources,
        targets=targets,
        unseen=unseen,
        unit=unit_of(rows),
    )


def reference_of(one: Mapping[str, Any], systems: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Say what a system is held against, so that they differ in one thing; None where nothing is fit.

    - on an adjusted encoder: what was trained in the same way on the original one;
    - on one of several encoders pretrained here: in the same way on the joint one (``_joint``);
    - trained on translations, or reading them: translate-train by the same translator on the same encoder;
    - with an auxiliary loss, as in continual learning: the same method without it on the same encoder;
    - else, and where that is lacking: source-only on the same encoder.
    Of several, the one that has most fields of translator and optimization in common with it.
    """
    base = str(one["encoder.original"]) if one["encoder.adjusted"] else ""
    if one["encoder.kind"] == "pretrain" and not base:
        base = _joint(systems)
    same_way = [other for other in systems if all(other[name] == one[name] for name in SYSTEM[1:])]
    on_base = [other for other in same_way if other["encoder"] == base != one["encoder"]]
    if on_base and not one["auxiliary"]:
        return on_base[0]
    in_translation = one["inputs"] in IN_TRANSLATION
    if one["method"] == "source-only" and not in_translation:
        return None
    beside = [other for other in systems if other["encoder"] == one["encoder"]]
    beside = [other for other in beside if other["inputs"] not in IN_TRANSLATION]
    own, found = _settings(one), [other for other in beside if other["method"] == "source-only"]
    if one["auxiliary"]:
        found = [other for other in beside if other["method"] == one["auxiliary.method"]] or found
    by = own.get("translator")
    if in_translation or (one["method"] != "translate-train" and (by or one["method"] in READ_TRANSLATIONS)):
        taught = [other for other in beside if other["method"] == "translate-train"]
        found = [other for other in taught if _settings(other).get("translator") == by] or found
    return max(
        found, key=lambda other: (len(own.items() & _settings(other).items()), key_of(other)), default=None
    )


def _joint(systems: Sequence[Mapping[str, Any]]) -> str:
    """Return the encoder that several languages share whole, trained on masked words; "" without one.

    Of several, the one of most languages, of uncut text before others.
    """
    shared = [
        (-len(one["encoder.languages"].split("+")), bool(one.get("encoder.lines")), str(one["encoder"]))
        for one in systems
        if one["encoder.kind"] == "pretrain" and not one["encoder.adjusted"] and not one["encoder.modules"]
        if "+" in one["encoder.languages"] and one["encoder.method"] == "masked-language-modelling"
    ]
    return min(shared)[-1] if shared else ""


def _settings(one: Mapping[str, Any]) -> dict[str, Any]:
    """Return the optimization, and who translated what a system was trained on, or else what it reads."""
    own = {name: one[name] for name in one if name.split(".")[0] in ("translator", "optimization")}
    own = {name: value for name, value in own.items() if not pd.isna(value) and value != ""}
    return own if "translator" in own else own | json.loads(one["inputs.translator"] or "{}")


ASKED = [*SYSTEM, "seed", "encoder.seed", "run", "language", "metric", "score", "source", "target"]
"""Columns that a comparison looks at."""


def tested(
    m: Measurements, where: ScoredSet, references: Mapping[Key, Key]
) -> dict[tuple[Key, str], Comparison]:
    """Test every system against its reference in every column; corrected over all of them."""
    rows = {tuple(map(str, key)): own for key, own in where.rows[ASKED].groupby(SYSTEM)}
    found = {}
    for (system, reference), (column, codes) in product(references.items(), where.columns.items()):
        ours, theirs = (rows[key][rows[key]["language"].isin(codes)] for key in (system, reference))
        one = compare(m, ours, theirs, unit=where.unit)
        if one is not None and {*one.languages} == {*codes}:
            found[system, column] = one
    return corrected(found)
