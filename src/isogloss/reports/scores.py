"""Test sets with the systems scored on them, and the table of scores: systems down, test languages across.

One table serves every use of scores: methods side by side (X-Mixup, Table 1), adjusted encoders and the
original ("The Impact of Cross-Lingual Adjustment …", Tables 2 to 4), encoders with and without modules ("On
Negative Interference …", Table 2). Systems are compared to references, significant differences are marked.
"""

import json
from collections.abc import Collection, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, TypeVar

import pandas as pd

from isogloss.core.progress import OnProgress, no_progress, one_by_one
from isogloss.reports.checks import UNITS
from isogloss.reports.comparison import (
    SYSTEM,
    TEST_SET,
    SystemComparison,
    best_split,
    compare,
    holm_corrected,
    model_languages,
    unit_of,
)
from isogloss.reports.frames import list_rows
from isogloss.reports.measurements import Measurements, cache_result
from isogloss.reports.names import count, name_systems
from isogloss.reports.run_facts import ON_TRANSLATIONS, ZERO_SHOT

GAP = "gap"

MEAN = "mean of targets"
UNSEEN = "unseen"

IN_TRANSLATION = ("paired", "translated")
"""Inputs in translation, which are the same test set. Other changes of the inputs are different test sets."""

TRAINING = ("optimization", "peft")
"""Groups of facts in which a baseline and a system that differs from it in its method are equal."""

OF_ENCODERS = (
    *("encoder.run", "encoder.seed", "encoder.original", "encoder.name", "encoder.languages"),
    *("encoder.modules", "encoder.lines"),
)
"""Differences between encoders pretrained in the same way: languages, amount of text, modules."""

METHOD = ("method", "auxiliary", "teacher", "after", "translator", "average")
"""Groups of facts about the method, with its auxiliary loss, what it starts from and what it learns from."""

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
    """Languages that models or adjusted encoders were trained for. Default: all except the sources."""
    unseen: tuple[str, ...]
    unit: str
    against: Mapping[str, str]
    """Ids of models with a baseline in the recipe, each with the id of its baseline."""

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns that can be tested, by name, each with the languages that it averages."""
        columns = {
            language_code: (language_code,) for language_code in (*self.sources, *self.targets, *self.unseen)
        }
        means = {MEAN: self.targets, UNSEEN: self.unseen}
        return columns | {name: codes for name, codes in means.items() if len(codes) > 1}

    def units_of(self, data: pd.DataFrame) -> str:
        """Describe the units that numbers are averaged over: "3 seeds", "1 to 3 seeds"."""
        fewest = data["units"].min()
        most_text = count(data["units"].max(), UNITS[self.unit])
        return most_text if data["units"].nunique() == 1 else f"{fewest} to {most_text}"

    @cached_property
    def systems(self) -> list[Facts]:
        """The facts of each system, in order: references first, adjusted encoders last, by size."""
        facts = list_rows(self.rows.drop_duplicates(SYSTEM))
        joint = _joint(facts)
        return sorted(facts, key=lambda system: _order(system, joint))

    @cached_property
    def candidates(self) -> Mapping[Key, Sequence[Facts]]:
        """The systems that each system could be compared with: that which the recipe names, if it does."""
        systems = {key_of(system): system for system in self.systems}
        baselines = self._baselines_named() if self.against else {}
        return {
            key: baselines[key] if key in baselines else find_baselines(system, self.systems)
            for key, system in systems.items()
        }

    @property
    def references(self) -> Mapping[Key, Facts]:
        """The baseline of each system that has a single one."""
        return {key: candidates[0] for key, candidates in self.candidates.items() if len(candidates) == 1}

    def _baselines_named(self) -> dict[Key, list[Facts]]:
        """Return the systems whose baseline the recipe names, with it, if it was scored here."""
        rows = list_rows(self.rows.drop_duplicates(["model", *SYSTEM]))
        rows_by_model = {row["model"]: row for row in rows if row["inputs"] not in IN_TRANSLATION}
        baselines: dict[Key, list[Facts]] = {}
        for row in rows:
            if baseline := self.against.get(row["model"]):
                system = rows_by_model.get(baseline)
                baselines[key_of(row)] = [system] if system else []
        return baselines


def _order(system: Facts, joint: Collection[str]) -> tuple[bool | float | str, ...]:
    size: float = float("inf") if pd.isna(system["encoder.size"]) else float(system["encoder.size"])
    encoder = system["encoder"] not in joint, system["encoder.adjusted"], size, system["encoder.label"]
    reference = system["reference"]
    references_first = reference != ZERO_SHOT, reference != ON_TRANSLATIONS
    return *encoder, *references_first, system["method"], system["system"], *key_of(system)


def key_of(facts: Facts) -> Key:
    """Return the key of a system from its facts."""
    return tuple(str(facts[name]) for name in SYSTEM)


def _list_facts(test_set: "ScoredSet") -> list[str]:
    return list(test_set.about.values())


@cache_result
def scored_sets(measurements: Measurements) -> list[ScoredSet]:
    """Return every test set that models were scored on, in order of corpora.

    A model without a source (target-only) belongs to the test sets of every source.
    """
    scores = measurements.frame("scores")
    if scores.empty:
        return []
    mixed_inputs = scores["inputs"].mask(scores["inputs"].isin(IN_TRANSLATION), "")
    scores = scores.assign(mixed=mixed_inputs, best=scores.index.isin(best_split(scores).index))
    scores = scores.sort_values([*SYSTEM, "model", "language"], kind="stable")
    keys = ["mixed", *(name for name in TEST_SET if name != "source")]
    test_sets = []
    for key, rows in scores.groupby(keys):
        for source in sorted(set(rows["source"]) - {""}) or [""]:
            scored_rows = rows["language"].isin(rows.loc[rows["source"] == source, "language"])
            columns = {**dict(zip(keys, key, strict=True)), "source": source}
            test_sets.append(
                _scored_set(columns, rows[scored_rows & rows["source"].isin([source, ""])], measurements)
            )
    return sorted(
        (test_set for test_set in test_sets if len(test_set.rows)),
        key=_list_facts,
    )


def _scored_set(columns: Mapping[str, str], rows: pd.DataFrame, measurements: Measurements) -> ScoredSet:
    codes = sorted(rows["language"].unique())
    sources = tuple(language_code for language_code in codes if language_code in columns["source"].split("+"))
    pairs = [pair.split("-") for pairs in rows["encoder.pairs"].unique() for pair in pairs.split("+")]
    made_for = {
        language_code for parts in (*rows["target"].str.split("+"), *pairs) for language_code in parts
    }
    other_languages = [language_code for language_code in codes if language_code not in sources]
    targets = tuple(language_code for language_code in other_languages if language_code in made_for) or tuple(
        other_languages
    )
    unseen_languages = tuple(
        language_code for language_code in other_languages if language_code not in targets
    )
    # On languages without a model for them, all models of a system count.
    made_for_none = rows["language"].isin(set(other_languages) - made_for)
    rows = model_languages(rows.assign(target=rows["target"].mask(made_for_none, "")))
    return ScoredSet(
        about={name: columns[name] for name in (*TEST_SET, "mixed")},
        rows=name_systems(rows, measurements.display_names),
        sources=sources,
        targets=targets,
        unseen=unseen_languages,
        unit=unit_of(rows),
        against=measurements.against,
    )


def find_baselines(system: Facts, systems: Sequence[Facts]) -> Sequence[Facts]:
    """Return the possible baselines of a system, which differ from it in one thing.

    The first kind that exists is returned:

    - on an adjusted encoder: the same way of training on the original encoder;
    - on one of several encoders pretrained here: the same way on the joint encoder (``_joint``);
    - with an auxiliary loss, as in continual learning: the same method without it;
    - continued from a model: that model;
    - trained on translations, or reading them: systems trained on translations by the same translator, with
      only the loss of its task (translate-train);
    - systems trained only on source labels, with the loss of its task (source-only);
    - with a part of the weights trained (LoRA …): the same method with all weights.

    All except the first two use the same encoder. Hyper-parameters and the trained part of the weights
    (``TRAINING``) are equal, except for a model that the system continues from. Several systems are returned
    if they differ in fields of their methods.
    """
    other_systems = [candidate for candidate in systems if key_of(candidate) != key_of(system)]
    if not system["auxiliary"] and (same_way := _on_first_encoder(system, systems, other_systems)):
        return same_way
    other_systems = [candidate for candidate in other_systems if candidate["encoder"] == system["encoder"]]
    other_systems = [candidate for candidate in other_systems if candidate["inputs"] not in IN_TRANSLATION]
    kinds = (
        _without_auxiliary(system, other_systems),
        [candidate for candidate in other_systems if candidate["way"] == system.get("after.way")],
        _on_translations(system, other_systems),
        _zero_shot(system, other_systems),
        _fully_trained(system, other_systems),
    )
    return next((kind for kind in kinds if kind), [])


def reference_of(system: Facts, systems: Sequence[Facts]) -> Facts | None:
    """Return the baseline of a system. None without one, or if several are possible."""
    candidates = find_baselines(system, systems)
    return candidates[0] if len(candidates) == 1 else None


def _on_first_encoder(
    system: Facts, systems: Sequence[Facts], further_systems: Sequence[Facts]
) -> Sequence[Facts]:
    """Return the same way of training on the original encoder, or on the joint one.

    Among several joint encoders, those with its languages and the same pretraining are used.
    """
    first_encoders: Set[str] = {str(system["encoder.original"])} if system["encoder.adjusted"] else set()
    if system["encoder.kind"] == "pretrain" and not first_encoders:
        first_encoders = set(_joint(systems))
    if system["encoder"] in first_encoders:
        return []
    candidates = [
        system_elsewhere
        for system_elsewhere in further_systems
        if system_elsewhere["encoder"] in first_encoders
        and all(system_elsewhere[name] == system[name] for name in SYSTEM[1:])
    ]
    languages = set(system["encoder.languages"].split("+"))
    covering = [
        system_elsewhere
        for system_elsewhere in candidates
        if languages <= set(system_elsewhere["encoder.languages"].split("+"))
    ]
    candidates = covering or candidates
    trained_so = [
        system_elsewhere
        for system_elsewhere in candidates
        if not _differing(system, system_elsewhere, ["encoder"], but=OF_ENCODERS)
    ]
    return trained_so or candidates


def _without_auxiliary(system: Facts, other_systems: Sequence[Facts]) -> Sequence[Facts]:
    """Return the same method without its auxiliary loss."""
    if not system["auxiliary"]:
        return []
    groups = [*TRAINING, *(name for name in METHOD if name not in ("auxiliary", "teacher"))]
    same_method = [
        candidate for candidate in other_systems if candidate["method"] == system["auxiliary.method"]
    ]
    return [candidate for candidate in same_method if not _differing(system, candidate, groups)]


def _on_translations(system: Facts, other_systems: Sequence[Facts]) -> Sequence[Facts]:
    """Return systems trained on translations by the system's translator, if the system also reads some.

    If some of them have the same source of labels (a teacher or not), only these are returned.
    """
    reads_inputs = system["inputs"] in IN_TRANSLATION
    if system["reference"] == ON_TRANSLATIONS or not (reads_inputs or system["read.translations"]):
        return []
    candidates = [candidate for candidate in other_systems if candidate["reference"] == ON_TRANSLATIONS]
    if system["read.translations"]:
        candidates = [
            candidate for candidate in candidates if not _differing(system, candidate, ["translator"])
        ]
    else:
        translator = json.loads(system["inputs.translator"] or "{}").get("translator", "")
        candidates = [candidate for candidate in candidates if candidate["translator"] == translator]
    candidates = [candidate for candidate in candidates if not _differing(system, candidate, TRAINING)]
    return [
        candidate for candidate in candidates if candidate["read.taught"] == system["read.taught"]
    ] or candidates


def _zero_shot(system: Facts, other_systems: Sequence[Facts]) -> Sequence[Facts]:
    """Return systems trained only on source labels, unless the system is one of them."""
    if system["reference"] == ZERO_SHOT and system["inputs"] not in IN_TRANSLATION:
        return []
    candidates = [candidate for candidate in other_systems if candidate["reference"] == ZERO_SHOT]
    return [candidate for candidate in candidates if not _differing(system, candidate, TRAINING)]


def _fully_trained(system: Facts, other_systems: Sequence[Facts]) -> Sequence[Facts]:
    """Return the same method with all weights trained."""
    if not _values(system, ["peft"]):
        return []
    same_method = [candidate for candidate in other_systems if candidate["method"] == system["method"]]
    fully = [candidate for candidate in same_method if not _values(candidate, ["peft"])]
    return [candidate for candidate in fully if not _differing(system, candidate, ["optimization", *METHOD])]


def _joint(systems: Sequence[Facts]) -> Set[str]:
    """Return the joint encoders: encoders without modules pretrained on the most languages.

    If some of them were pretrained on uncut text, only these are returned.
    """
    shared = [
        system
        for system in systems
        if system["encoder.kind"] == "pretrain"
        and not system["encoder.adjusted"]
        and not system["encoder.modules"]
        and "+" in system["encoder.languages"]
    ]

    def rank(system: Facts) -> tuple[int, bool]:
        return -len(system["encoder.languages"].split("+")), bool(system.get("encoder.lines"))

    best_rank = min((rank(encoder) for encoder in shared), default=None)
    return {str(system["encoder"]) for system in shared if rank(system) == best_rank}


def _values(system: Facts, groups: Collection[str]) -> dict[str, object]:
    """Return the facts of groups, by column, without the name of the method."""
    return {
        name: value
        for name, value in system.items()
        if name.split(".")[0] in groups and name not in ("method", "encoder") and not pd.isna(value)
        if value != ""
    }


def _differing(
    system: Facts, other_system: Facts, groups: Collection[str], *, but: tuple[str, ...] = ()
) -> set[str]:
    """Return the columns of groups of facts in which two systems differ, ``but`` those that begin so."""
    ours, theirs = (_values(facts, groups) for facts in (system, other_system))
    names = {name for name in {*ours, *theirs} if not name.startswith(but)}
    return {name for name in names if ours.get(name) != theirs.get(name)}


COMPARED = [*SYSTEM, "seed", "encoder.seed", "run", "language", "metric", "score", "source", "target"]
"""Columns that a comparison needs."""


def compare_with_references(
    measurements: Measurements,
    test_set: ScoredSet,
    references: Mapping[Key, Key],
    on_progress: OnProgress = no_progress,
) -> dict[tuple[Key, str], SystemComparison]:
    """Compare every system with its reference in every column, corrected over all of them."""
    rows = {tuple(str(part) for part in key): group for key, group in test_set.rows[COMPARED].groupby(SYSTEM)}
    comparisons = {}
    tests = list(product(references.items(), test_set.columns.items()))
    for (system, reference), (column, codes) in one_by_one(tests, "comparisons", on_progress):
        ours, theirs = (rows[key][rows[key]["language"].isin(codes)] for key in (system, reference))
        comparison = compare(measurements, ours, theirs, unit=test_set.unit)
        if comparison is not None and set(comparison.languages) == set(codes):
            comparisons[system, column] = comparison
    return holm_corrected(comparisons)


def values_of(test_set: ScoredSet) -> pd.DataFrame:
    """Return each system's scores per unit and column, and the gap."""
    values = mean_scores(test_set, test_set.columns)
    sides = mean_scores(test_set, {"high": test_set.sources, "low": test_set.targets})
    values[GAP] = sides["high"] - sides["low"]
    return values[sorted(values, key=UNSEEN.__eq__)].dropna(axis=1, how="all")


def mean_scores(test_set: ScoredSet, groups: Mapping[K, Sequence[str]]) -> pd.DataFrame:
    """Return each system's mean over the languages of each group, a row per unit.

    nan if a language is missing. The models of one unit are averaged first.
    """
    wide = test_set.rows.groupby([*SYSTEM, test_set.unit, "language"])["score"].mean().unstack("language")
    return pd.DataFrame(
        {name: wide.reindex(columns=list(codes)).mean(axis=1, skipna=False) for name, codes in groups.items()}
    )
