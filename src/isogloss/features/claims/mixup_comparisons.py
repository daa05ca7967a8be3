"""X-Mixup systems with their comparisons: baselines, ablations, and other systems on one test set.

Paper: Yang et al. (2022), "Enhancing Cross-lingual Transfer by Manifold Mixup". The full X-Mixup reads inputs
paired with their translations; its baseline is translate-train by the same translator with the most similar
optimization, in tagging with the labels of a teacher, as X-Mixup has them. Only systems that the paper has
count: no adjusted encoder, modules, start or option beyond the paper. Targets are the languages that models
were trained for; their score is the mean.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from isogloss.features.claims.checks import name_comparison
from isogloss.features.claims.comparisons import drop_strays, labelled_groups, replicates, unlike_settings
from isogloss.reports.checks import HELPS, UNITS, Bounds, Check, check_of
from isogloss.reports.comparison import (
    SYSTEM,
    TEST_SET,
    compare,
    filter_rows,
    model_languages,
    rows_of,
    where_any,
)
from isogloss.reports.frames import list_columns, list_rows, split_by
from isogloss.reports.measurements import Measurements, cache_result

CLASSIFICATION = (
    *("nli", "paraphrase", "text-classification", "pair-classification"),
    *("multi-label-classification", "multiple-choice"),
)
"""Tasks whose answers belong to a whole input. Only these have a KL term for consistent predictions."""

ABLATIONS = {
    "ratio": ("without mixup", {"method.ratio", "method.learned_ratio", "method.layer"}),
    "learned_ratio": ("constant λ", {"method.learned_ratio"}),
    "schedule": ("without scheduled sampling", {"method.schedule", "method.decay"}),
    "mse": ("without MSE", {"method.mse"}),
    "kl": ("without KL", {"method.kl"}),
    "mse kl": ("without both", {"method.mse", "method.kl"}),
}
"""Parts that ablations remove (Tables 5 and 9): a name, and the fields that may then differ from the full
system."""

NO_MIXUP = ABLATIONS["ratio"][0]
"""Without mixup in training and, as Table 5 has it, at inference."""

MIXING_ALONE = "without mixup, read paired"
"""Ablation of mixup only in training. It is stricter than the paper, whose baseline reads no translations."""

OF_SYSTEM = ["task", "source", "target", "encoder", "way"]
"""Columns that identify a system, to find measurements of only a few of its models."""

FIXED: Mapping[str, object] = {
    **{"method.residual": "normed", "method.attends": None, "method.mixed": None},
    **{"method.sampling": "batch", "method.with_source": True},
}
"""Fields with a single value in the paper. Systems trained with different values are excluded."""

SETTINGS: Mapping[str, object] = {
    **{"method.ratio": 0.5, "method.learned_ratio": True, "method.alpha": None, "method.decay": 0},
    **{"method.mse": 1.0, "method.kl": 1.0, "method.schedule": True, "method.labels": None},
    **{"method.back_loss": None, "method.source_as_target": None},
}
"""The paper's settings of X-Mixup. Among several systems, the nearest to these are judged."""


@dataclass(frozen=True, kw_only=True)
class MixupComparison:
    """A full X-Mixup, its baselines, and all else that was measured on the same test set."""

    m: Measurements
    group: str
    """Words for the test set and encoder."""
    name: str
    """The group, and which X-Mixup where it has several."""
    systems: str
    """Label of the comparison, without split and layer of states."""
    preference: tuple[float, ...]
    """The deepest layer of states is preferred."""
    rows: pd.DataFrame
    """All rows on this encoder. ``role`` of a language is "source", "target" or "unseen"."""
    full: pd.DataFrame
    trained: pd.DataFrame
    """Translate-train by the same translator."""
    plain: pd.DataFrame
    """Source-only."""

    @property
    def unlike_paper(self) -> tuple[int, ...]:
        """Distance of a full X-Mixup from the paper. The nearest systems are judged.

        In order: whether it lacks a baseline, and whether the translator of its test inputs differs from
        training. Then the number of settings that differ from the paper, and of optimization fields that
        differ from the baseline.
        """
        facts = self.full.iloc[0]
        translator_settings = json.loads(facts["inputs.translator"] or "{}")
        translator_facts = {name: facts[name] for name in facts.index if name.split(".")[0] == "translator"}
        is_different = bool(translator_settings) and any(
            translator_facts.get(name) != fact for name, fact in translator_settings.items()
        )
        unlike = unlike_settings(self.full[:1], SETTINGS).iloc[0]
        distance = len(_differing(facts, self.trained.iloc[0], ["optimization"])) if len(self.trained) else 0
        return len(self.trained) == 0, is_different, int(unlike), distance

    @property
    def unmixed(self) -> pd.DataFrame:
        """The full X-Mixup without translations at inference."""
        is_unmixed: "pd.Series[bool]" = (self.rows["way"] == self.full["way"].iloc[0]) & (
            self.rows["inputs"] == ""
        )
        return self.rows[is_unmixed]

    def check(
        self,
        ours: pd.DataFrame,
        theirs: pd.DataFrame,
        label: str = "",
        role: str = "target",
        bounds: Bounds = HELPS,
    ) -> Check:
        """Check a difference on languages of one role, by default above 0."""
        unit, sides = replicates(*(self.on(rows, role) for rows in (ours, theirs)))
        check = check_of(compare(self.m, *sides, unit=unit), f"{self.name}: {label}", bounds, UNITS[unit])
        return self.name_check(check, label)

    def name_check(self, check: Check, statement: str) -> Check:
        """Name the comparison and the statement that a check belongs to."""
        split = self.full["split"].iloc[0]
        (name_row,) = name_comparison(
            [check], self.systems, statement=statement, split=split, preference=self.preference
        )
        return name_row

    def on(self, rows: pd.DataFrame, role: str) -> pd.DataFrame:
        """Return the rows of languages with a role. For unseen languages, all models count."""
        role_rows = rows[rows["role"] == role]
        return role_rows.assign(target="") if role == "unseen" else role_rows


def mixup_comparisons(
    measurements: Measurements,
    rows: pd.DataFrame,
    *,
    inputs: Sequence[str] = ("paired",),
    layers: bool = False,
) -> Iterator[MixupComparison]:
    """Yield every full X-Mixup: with ``layers`` those that name a layer, else those with the paper's."""
    layer_columns = ["layer"] if "layer" in rows else []
    for group, frame in labelled_groups(measurements, rows, [*TEST_SET, "encoder", *layer_columns]):
        score_rows = frame.assign(
            targets=frame["target"].str.split("+").map(len).where(frame["target"] != "", 0)
        )
        mixes = score_rows[
            (score_rows["method"] == "x-mixup")
            & (score_rows["without"] == "")
            & score_rows["inputs"].isin(inputs)
        ]
        usual = mixes["method.layer"] == 0 if len(mixes) else mixes["inputs"] == 0
        mixes = mixes[~usual if layers else usual | (not usual.any())]
        fulls = [
            full_rows for _, full_rows in mixes.groupby(["way", "targets", "inputs", "inputs.translator"])
        ]
        comparisons = [_comparison(measurements, group, score_rows, full_rows) for full_rows in fulls]
        groups: dict[object, list[tuple[tuple[int, ...], MixupComparison]]] = {}
        for comparison in comparisons:
            first_row = comparison.full.iloc[0]
            key = first_row["inputs"], first_row["method.layer"] if layers else 0
            groups.setdefault(key, []).append((comparison.unlike_paper, comparison))
        judged_comparisons = [
            comparison
            for systems in groups.values()
            for unlike_paper, comparison in systems
            if unlike_paper == min(distance for distance, _ in systems)
        ]
        for comparison in judged_comparisons:
            system = comparison.full["system"].iloc[0]
            yield replace(
                comparison,
                name=group if len(judged_comparisons) == 1 else f"{group} {system}",
                preference=tuple(-float(frame[name].iloc[0]) for name in layer_columns),
            )


def _comparison(
    measurements: Measurements, group: str, score_rows: pd.DataFrame, full_rows: pd.DataFrame
) -> MixupComparison:
    """Compare a full X-Mixup with models that were trained for as many targets, or for none."""
    targets, sources = (set("+".join(full_rows[name]).split("+")) for name in ("target", "source"))
    roles = dict.fromkeys(targets, "target") | dict.fromkeys(sources, "source")
    rows = score_rows[score_rows["targets"].isin((0, full_rows["targets"].iloc[0]))]
    rows = rows.assign(role=rows["language"].map(roles).fillna("unseen"))
    full_rows = rows.loc[full_rows.index]
    return MixupComparison(
        m=measurements,
        group=group,
        name=group,
        systems=" ".join(str(full_rows[name].iloc[0]) for name in [*TEST_SET, *SYSTEM] if name != "split"),
        preference=(),
        rows=rows,
        full=full_rows,
        trained=_most_similar(rows, full_rows, "translate-train", "translator"),
        plain=_most_similar(rows, full_rows, "source-only"),
    )


@cache_result
def scored_mixups(measurements: Measurements) -> list[MixupComparison]:
    """Return the comparisons of main scores."""
    return list(mixup_comparisons(measurements, mixup_scores(measurements)))


def ablations(comparison: MixupComparison) -> dict[str, pd.DataFrame]:
    """Return by name the systems that are the full one in all but one part, read as in Table 5."""
    full_system = comparison.full.iloc[0]
    ablation_rows = dict[str, tuple[int, pd.DataFrame]]()
    rows = comparison.rows[comparison.rows["without"].isin(ABLATIONS)]
    for (part, _, inputs, _), group in split_by(rows, ["without", "way", "inputs", "inputs.translator"]):
        name, ablation = ABLATIONS[part]
        is_unmixed = name == NO_MIXUP and inputs == ""
        facts = ("method", "optimization", "translator", *(() if is_unmixed else ("inputs",)))
        name = MIXING_ALONE if name == NO_MIXUP and not is_unmixed else name
        differing = _differing(group.iloc[0], full_system, facts)
        if differing <= ablation and (name not in ablation_rows or len(differing) < ablation_rows[name][0]):
            ablation_rows[name] = len(differing), group
    return {name: group for name, (_, group) in ablation_rows.items()}


@cache_result
def mixup_scores(measurements: Measurements) -> pd.DataFrame:
    """Return the scores of the paper's systems by the tasks' main metrics."""
    rows = measurements.frame("scores")
    return paper_systems(rows[rows["main"].astype(bool)])


def _is_source(language_code: str, source: str) -> bool:
    return language_code in source.split("+")


@cache_result
def source_cka(measurements: Measurements) -> pd.DataFrame:
    """Return the CKA of each target with the source in each layer, as a table with the columns of scores."""
    rows = paper_systems(measurements.frame("cka"))
    rows = filter_rows(rows, _is_source, "first", "source")
    rows = drop_strays(rows.dropna(subset="cka"), OF_SYSTEM, ["corpus", "inputs"])
    return rows.assign(language=rows["second"], score=rows["cka"].astype(float), metric="CKA", split="")


def cka_of(measurements: Measurements, score_rows: pd.DataFrame) -> pd.DataFrame:
    """Return the CKA of a system's models with unmixed states, preferably on the corpus that was scored."""
    first_row = score_rows.iloc[0]
    rows = rows_of(source_cka(measurements), dict(first_row[["task", "source", "encoder", "way"]]))
    rows = rows[rows["encoder.run"].isin(score_rows["encoder.run"])]
    return where_any(where_any(rows, "corpus", first_row["corpus"]), "inputs", "")


def paper_systems(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the fine-tuned models that the paper has. ``without`` names the parts that X-Mixup lacks."""
    added_columns = ["encoder.adjusted", "encoder.modules", "after.method"]
    rows = rows[(rows[added_columns] == "").all(axis=1) & (rows["source"] != "")]
    rows = rows[rows["peft"].isna()] if "peft" in rows else rows
    rows = rows[unlike_settings(rows, FIXED) == 0]
    if "method.ratio_rate" in rows:
        rows = rows[rows["method.ratio_rate"].fillna(1) == 1]
    facts = rows[
        [name for name in list_columns(rows) if name in ("task", "method") or name.startswith("method.")]
    ]
    return rows.assign(without=[_name_disabled(row) for row in list_rows(facts)])


def _name_disabled(row: Mapping[str, object]) -> str:
    """Name the parts of X-Mixup that are off.

    Without mixing λ does not matter. KL counts only if it is used.
    """
    parts = ["ratio", "learned_ratio", "schedule", "mse", *(["kl"] if row["task"] in CLASSIFICATION else [])]
    disabled_parts = [
        part for part in parts if row["method"] == "x-mixup" and row.get(f"method.{part}", 1) == 0
    ]
    return " ".join(
        part for part in disabled_parts if part != "learned_ratio" or "ratio" not in disabled_parts
    )


def _most_similar(
    rows: pd.DataFrame, full_rows: pd.DataFrame, method: str, *equal_facts: str
) -> pd.DataFrame:
    """Return the system of a method with the given facts and the most similar optimization.

    Between equally similar systems, prefer the one whose translations have labels from a teacher, like
    X-Mixup's.
    """
    rows, facts = rows[(rows["method"] == method) & (rows["inputs"] == "")], full_rows.iloc[0]
    distance = {
        way["way"]: (len(_differing(way, facts, ["optimization"])), way.get("method.labels") != "teacher")
        for _, way in rows.drop_duplicates("way").sort_values("way").iterrows()
        if not _differing(way, facts, equal_facts)
    }
    return rows[rows["way"] == min(distance, key=distance.__getitem__, default=None)]


def _differing(system: pd.Series, reference: pd.Series, groups: Iterable[str]) -> set[str]:
    """Return the columns of groups of facts ("method.mse" is one of "method") in which two rows differ."""
    return {
        name
        for name in system.index
        if name.split(".")[0] in groups
        and system[name] != reference[name]
        and not (pd.isna(system[name]) and pd.isna(reference[name]))
    }


def select_ways(rows: pd.DataFrame, systems: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of models trained as these systems are, or all where none is."""
    ways = {way for system in systems for way in system["way"]}
    trained_so = rows["way"].isin(ways)
    return rows[trained_so] if trained_so.any() else rows


def pivot_by_unit(rows: pd.DataFrame, unit: str) -> pd.DataFrame:
    """Return scores [unit language]."""
    return model_languages(rows).pivot_table(index=unit, columns="language", values="score")


def _is_no_source(language_code: str, source: str) -> bool:
    return language_code not in source.split("+")


def target_means(rows: pd.DataFrame) -> "pd.Series[float]":
    """Return the mean score over seeds on each of the models' languages other than the source."""
    rows = model_languages(rows)
    targets = filter_rows(rows, _is_no_source, "language", "source")
    return targets.groupby("language")["score"].mean()
