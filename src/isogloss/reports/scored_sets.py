"""Test sets: the scores one table shows, which systems they are of, and what each system is held against."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd

from isogloss.reports.comparison import PLACE, SYSTEM, Comparison, compare, corrected, unit_of
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import name_systems

MEAN, UNSEEN = "mean of targets", "unseen"

IN_TRANSLATION = ("paired", "translated")
"""Inputs that come in translation test the same sets; what else is done to inputs makes another test set."""

SOURCE_ONLY, TARGET_ONLY, TRANSLATE_TRAIN, CONTINUAL = (
    *("source-only", "target-only", "translate-train", "continual"),
)

READ_TRANSLATIONS = (TRANSLATE_TRAIN, "x-mixup", "consistency")
"""Methods that train on translations, whoever made them."""

Key = tuple[str, ...]
"""A system, by the columns SYSTEM."""


@dataclass(frozen=True, kw_only=True)
class ScoredSet:
    """What one table shows: all scores by one measure of models of one source on one test set."""

    about: Mapping[str, str]
    """The columns PLACE, and ``mixed``."""
    rows: pd.DataFrame
    """With the names of systems; nobody's target is what no model was made for."""
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    """Languages that models, or adjusted encoders, were made for; all but the sources where none was."""
    unseen: tuple[str, ...]
    unit: str

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns that can be tested, by name, each with the languages it is the mean of."""
        there = (*self.sources, *self.targets, *self.unseen)
        found: dict[str, tuple[str, ...]] = {code: (code,) for code in there}
        found |= {MEAN: self.targets} if len(self.targets) > 1 else {}
        return found | ({UNSEEN: self.unseen} if len(self.unseen) > 1 else {})

    @property
    def systems(self) -> list[Mapping[str, Any]]:
        """The facts of each system: what others are held against first, adjusted encoders last, by size."""
        facts: list[Mapping[str, Any]] = self.rows.drop_duplicates(SYSTEM).to_dict("records")
        return sorted(facts, key=lambda one: _order(one, _joint(facts)))


def _order(one: Mapping[str, Any], joint: str) -> tuple[Any, ...]:
    size = float("inf") if pd.isna(one["encoder.size"]) else float(one["encoder.size"])
    encoder = one["encoder"] != joint, one["encoder.adjusted"], size, one["encoder.label"]
    method = one["method"]
    return (*encoder, method != SOURCE_ONLY, method != TRANSLATE_TRAIN, method, one["system"], key_of(one))


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
    how = scores["inputs"]
    scores = scores.assign(mixed=how.where(~how.isin(IN_TRANSLATION), ""))
    scores = scores.sort_values([*SYSTEM, "model", "language"], kind="stable")
    by = [*PLACE, "mixed"]
    groups = dict(iter(scores.groupby(by)))
    sourceless = {key: rows for key, rows in groups.items() if not key[PLACE.index("source")]}
    joined_by: set[object] = set()
    found = []
    for key, rows in groups.items():
        other = tuple("" if name == "source" else part for name, part in zip(by, key, strict=True))
        if key not in sourceless and other in sourceless:
            more = sourceless[other]
            rows = pd.concat([rows, more[more["language"].isin(rows["language"])]])  # noqa: PLW2901
            joined_by.add(other)
        found.append((key, rows))
    return [
        _scored_set(dict(zip(by, key, strict=True)), rows, m) for key, rows in found if key not in joined_by
    ]


def _scored_set(about: Mapping[str, str], rows: pd.DataFrame, m: Measurements) -> ScoredSet:
    there = sorted(rows["language"].unique())
    sources = tuple(code for code in about["source"].split("+") if code in there)
    pairs = [pair.split("-") for pairs in rows["encoder.pairs"].unique() for pair in pairs.split("+")]
    made_for = {code for target in rows["target"].unique() for code in target.split("+")}
    made_for |= {code for pair in pairs for code in pair}
    others = [code for code in there if code not in sources]
    targets = tuple(code for code in others if code in made_for) or tuple(others)
    unseen = tuple(code for code in others if code not in targets)
    rows = rows.assign(target=rows["target"].where(~rows["language"].isin(unseen), ""))
    return ScoredSet(
        about=about,
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
    - else, and where that is lacking, as for continual always: source-only on the same encoder.
    Of several, the one that has most fields of translator and optimization in common with it.
    """
    base = _base(one, systems)
    same_way = [other for other in systems if all(other[name] == one[name] for name in SYSTEM[1:])]
    on_base = [other for other in same_way if other["encoder"] == base != one["encoder"]]
    if on_base and one["method"] != CONTINUAL:
        return on_base[0]
    in_translation = one["inputs"] in IN_TRANSLATION
    if one["method"] == SOURCE_ONLY and not in_translation:
        return None
    beside = [other for other in systems if other["encoder"] == one["encoder"]]
    beside = [other for other in beside if other["inputs"] not in IN_TRANSLATION]
    who, plain = _translator(one), [other for other in beside if other["method"] == SOURCE_ONLY]
    found = plain
    if in_translation or (one["method"] != TRANSLATE_TRAIN and (who or one["method"] in READ_TRANSLATIONS)):
        taught = [other for other in beside if other["method"] == TRANSLATE_TRAIN]
        by_same = [one for one in taught if _translator(one).get("translator") == who.get("translator")]
        found = by_same or plain
    return max(found, key=lambda other: (_in_common(one, other), key_of(other)), default=None)


def _base(one: Mapping[str, Any], systems: Sequence[Mapping[str, Any]]) -> str:
    """Return the encoder that another is held against: the original, or, if made here, the joint one."""
    if one["encoder.adjusted"]:
        return str(one["encoder.original"])
    return _joint(systems) if one["encoder.kind"] == "pretrain" else ""


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


def _translator(one: Mapping[str, Any]) -> dict[str, Any]:
    """Return who translated what a system was trained on, or else what it reads; nothing where files did."""
    own = {name: one[name] for name in one if name.split(".")[0] == "translator"}
    said = {name: value for name, value in own.items() if not pd.isna(value) and value != ""}
    return said or (dict(json.loads(one["inputs.translator"])) if one["inputs.translator"] else {})


def _in_common(one: Mapping[str, Any], other: Mapping[str, Any]) -> int:
    ours, theirs = (
        {**_translator(each), **{name: each[name] for name in each if name.split(".")[0] == "optimization"}}
        for each in (one, other)
    )
    return sum(name in theirs and theirs[name] == value for name, value in ours.items())


def references_of(systems: Sequence[Mapping[str, Any]]) -> dict[Key, Key]:
    """Return what each system of a table is held against, for those that something is."""
    found = {key_of(one): reference_of(one, systems) for one in systems}
    return {key: key_of(other) for key, other in found.items() if other is not None}


ASKED = ("run", "language", "metric", "score", "source", "target")
"""Columns that a comparison looks at."""


def tested(
    m: Measurements, where: ScoredSet, references: Mapping[Key, Key]
) -> dict[tuple[Key, str], Comparison]:
    """Test every system against its reference in every column; corrected over all of them."""
    needed = list(dict.fromkeys([*SYSTEM, where.unit, *ASKED]))
    rows = {tuple(map(str, key)): own for key, own in where.rows[needed].groupby(SYSTEM)}
    own = {
        (key, column): one[one["language"].isin(languages)]
        for key, one in rows.items()
        for column, languages in where.columns.items()
    }
    found: dict[object, Comparison] = {}
    for (system, reference), column in product(references.items(), where.columns):
        sides = own[system, column], own[reference, column]
        one = compare(m, *sides, unit=where.unit) if all(map(len, sides)) else None
        if one is not None and set(one.languages) == set(where.columns[column]):
            found[system, column] = one
    return corrected(found)  # type: ignore[return-value]
