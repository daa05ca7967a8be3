"""What the second paper claims of X-Mixup, each claim with the rule it is judged by.

Paper: Yang et al. (2022), "Enhancing Cross-lingual Transfer by Manifold Mixup". The whole X-Mixup reads
inputs beside their translations ("paired"); its baseline is translate-train by the same translator, trained
most like it. Only what the paper trained counts: no adjusted encoder, modules, start or option of our own.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from isogloss.metrics.correlation import bootstrap_interval, spearman
from isogloss.reports.comparison import PLACE, best_split, boards, compare, spoken_for, unit_of
from isogloss.reports.measurements import Measurements
from isogloss.reports.verdicts import Check, Claim, Found, check_of

CLASSIFICATION = ("nli", "paraphrase")
"""Tasks that one answer an input is given in: predictions are kept consistent by KL in these alone."""

ABLATIONS = {
    "ratio": ("without mixup", ("learned_ratio", "layer")),
    "learned_ratio": ("constant λ", ()),
    "schedule": ("without scheduled sampling", ("decay",)),
    "mse": ("without MSE", ()),
    "kl": ("without KL", ()),
    "mse kl": ("without both", ()),
}
"""What can be left out (Tables 5 and 9): words, and which other fields then say nothing."""

OURS = {"method.residual": "summed", "method.sampling": "example", "method.with_source": False}
"""What the paper does not have: what was trained with one decides nothing."""

LEAST_SPREAD = 0.1
"""λ differs by example where its standard deviation is this share of its mean: our bar, none is given."""

FEWEST_LANGUAGES = 8
"""With fewer, rank correlations are hardly ever significant: with five languages only ρ = 1."""

UNCORRELATED = 0.5
"""A correlation within ± this is none to speak of: our bar, the paper has none."""

STATES = ("", "paired")
"""How inputs come where states are looked at."""

BOTH_QUANTILES, ALMOST_ONE = 2.80, 1 - 1e-9
"""Normal quantiles of the 5 % level and of 80 % power, added up; the largest ρ that has a Fisher's z."""

OF_TARGETS = "mean of the languages that models were made for, test over seeds and examples"


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A whole X-Mixup, what it is held against, and all else that was measured in the same place."""

    m: Measurements
    board: str
    about: str
    """The board, and which X-Mixup where it has several."""
    rows: pd.DataFrame
    """Everything on this encoder: language, score, metric, split, run and all facts."""
    whole: pd.DataFrame
    trained: pd.DataFrame
    """Translate-train by the same translator."""
    plain: pd.DataFrame
    """Source-only."""
    targets: frozenset[str]

    @property
    def unmixed(self) -> pd.DataFrame:
        """The whole without translations at inference."""
        return self.rows[(self.rows["way"] == self.whole["way"].iloc[0]) & (self.rows["inputs"] == "")]

    @property
    def classifies(self) -> bool:
        """Tell whether an input has one answer."""
        return self.whole["task"].iloc[0] in CLASSIFICATION

    def versus(
        self, ours: pd.DataFrame, theirs: pd.DataFrame, about: str, where: str = "targets", **bounds: float
    ) -> Check:
        """Check a difference on the targets, on the source, or on languages that no model was made for."""
        both = [self.on(rows, where) for rows in (ours, theirs)]
        found = compare(self.m, *both, unit=unit_of(*both))
        return check_of(found, f"{self.about}: {about}", **(bounds or {"above": 0.0}))

    def on(self, rows: pd.DataFrame, where: str) -> pd.DataFrame:
        """Keep the rows of "targets", "source" or "unseen" languages."""
        of_source, target = _of_source(rows, "language"), rows["language"].isin(self.targets)
        if where == "unseen":
            return rows[~target & ~of_source].assign(target="")
        return rows[of_source if where == "source" else target & ~of_source]


def mixup_is_above(m: Measurements) -> list[Check]:
    """Claim 2a: X-Mixup above translate-train above zero-shot."""
    checks: dict[object, Check] = {}
    for one in _benches(m, _scores(m)):
        step = one.board, *one.trained["way"].unique()
        checks[one.about] = one.versus(one.whole, one.trained, "x-mixup − translate-train")
        checks[step] = one.versus(one.trained, one.plain, "translate-train − source-only")
    return [*checks.values()]


def cka_rises(m: Measurements) -> list[Check]:
    """Claim 2b: X-Mixup models have more alike states than translate-train models."""
    found = []
    for one in _benches(m, _cka(m), inputs=STATES):
        also = _beside({"− source-only": one.versus(one.whole, one.plain, "")}, 1, 3)
        about = f"CKA, x-mixup − translate-train{also}"
        found.append(replace(one.versus(one.whole, one.trained, about), scale=1, digits=3))
    return found


def cka_goes_with_transfer(m: Measurements) -> list[Check]:
    """Claim 2c: the more alike its states are to the source's, the better a language is transferred to."""
    rows, found = _scores(m), []
    rows = rows[rows["method"].isin(["source-only", "translate-train"]) & (rows["inputs"] == "")]
    for about, own in boards(m, rows, [*PLACE, "encoder", "way"]):
        both = _both(_by_language(_cka_of(m, own)), _by_language(own))
        if len(both) >= (FEWEST_LANGUAGES if own["target"].any() else 1):
            found.append(_correlation(f"{about}: ρ of CKA and score", both, above=0))
    return found


def each_ablation_loses(m: Measurements) -> list[Check]:
    """Claim 2d: whatever is left out is missed."""
    found = []
    for one in _benches(m, _scores(m)):
        left = {**_ablations(one), "unmixed at inference": one.unmixed}
        found += [one.versus(one.whole, rows, f"whole − {name}") for name, rows in left.items() if len(rows)]
    return found


def unseen_languages_gain(m: Measurements) -> list[Check]:
    """Claim 2e: languages without translations in training gain too."""
    found = []
    for one in _benches(m, _scores(m)):
        reads = one.rows["inputs.translator"] == one.whole["inputs.translator"].iloc[0]
        tested = one.rows[
            reads & (one.rows["inputs"] == "translated") & (one.rows["method"] == "source-only")
        ]
        beside = {
            "of it without translations at inference": one.versus(one.unmixed, one.trained, "", "unseen"),
            "x-mixup − translate-test": one.versus(one.whole, tested, "", "unseen"),
        }
        about = f"unseen languages, x-mixup − translate-train{_beside(beside)}"
        found.append(one.versus(one.whole, one.trained, about, "unseen"))
    return found


def ratios_differ(m: Measurements) -> list[Check]:
    """Claim 2f: the ratio is each example's own."""
    rows = _systems(m.frame("mixup-ratio"))
    rows = spoken_for(rows[(rows["method"] == "x-mixup") & (rows["without"] == "")])
    rows = best_split(rows.assign(metric="λ", share=rows["std"].astype(float) / rows["mean"]))
    found = []
    for about, own in boards(m, rows, [*PLACE, "encoder", "way", "inputs.translator"]):
        table = own.pivot_table(index="seed", columns="language", values="share").dropna()
        words = f"{about}: std of λ over examples in percent of its mean, {own['mean'].mean():.3f}"
        values = tuple(map(float, table.mean(axis=1)))
        words = words if values else f"{words}: not measured"
        found.append(Check(about=words, values=values, above=LEAST_SPREAD, digits=2))
    return found


def gap_shrinks(m: Measurements) -> list[Check]:
    """Claim 2g: the gap between source and targets is smaller than translate-train's."""
    found = []
    for one in _benches(m, _scores(m)):
        target = _tables(one.on(one.whole, "targets")) - _tables(one.on(one.trained, "targets"))
        source = _tables(one.on(one.unmixed, "source")) - _tables(one.on(one.trained, "source"))
        means = [table.dropna(axis="columns", how="all").dropna().mean(axis=1) for table in (target, source)]
        values = tuple(map(float, (means[0] - means[1]).dropna()))
        about = f"{one.about}: gap of translate-train − of x-mixup"
        found.append(Check(about=about if values else f"{about}: not measured", values=values, above=0))
    return found


def source_gains(m: Measurements) -> list[Check]:
    """Claim 2h: the source language gains too."""
    return [
        one.versus(one.unmixed, one.trained, "source, x-mixup − translate-train", "source")
        for one in _benches(m, _scores(m))
    ]


def kl_is_worth_more(m: Measurements) -> list[Check]:
    """Claim 2i: in classification, leaving out KL costs more than leaving out MSE."""
    benches = [(one, _ablations(one)) for one in _benches(m, _scores(m)) if one.classifies]
    return [
        one.versus(left["without MSE"], left["without KL"], "without MSE − without KL")
        for one, left in benches
        if "without MSE" in left and "without KL" in left
    ]


def training_alone_helps(m: Measurements) -> list[Check]:
    """Claim 2j: mixing in training helps models that do not mix at inference."""
    return [
        one.versus(one.unmixed, one.trained, "unmixed at inference, x-mixup − translate-train")
        for one in _benches(m, _scores(m))
    ]


def layers_help(m: Measurements) -> list[Check]:
    """Claim 2k: mixing in any layer helps, in classification in any lower one."""
    places: dict[object, list[Bench]] = {}
    for one in _benches(m, _scores(m), layers=True):
        key = tuple(one.whole[[*PLACE, "encoder", "inputs.translator"]].iloc[0])
        places.setdefault(key, []).append(one)
    found = []
    for unsorted in places.values():
        own = sorted(unsorted, key=_layer)
        if len({*map(_layer, own)}) < 2:
            continue
        helping = own[: (len(own) + 1) // 2] if own[0].classifies else own
        for one in helping:
            found.append(one.versus(one.whole, one.trained, f"layer {_layer(one)} − translate-train"))
        if own[0].classifies:
            about = f"layer {_layer(own[0])} − layer {_layer(own[-1])}"
            found.append(own[0].versus(own[0].whole, own[-1].whole, about))
    return found


def centroids_come_closer(m: Measurements) -> list[Check]:
    """Claim 2l: less of the variance of states lies between the languages."""
    rows = _systems(m.frame("representation-map"))
    rows = rows[rows["what"] == "centroid"].drop_duplicates(["model", "corpus", "inputs", "layer"])
    rows = _deepest(rows.assign(score=rows["between"], language=rows["source"], metric="between", split=""))
    found = []
    for one in _benches(m, rows, inputs=STATES):
        name, theirs = ("translate-train", one.trained) if len(one.trained) else ("source-only", one.plain)
        about = f"variance between languages in percent, x-mixup − {name}"
        found.append(one.versus(one.whole, theirs, about, "source", below=0))
    return found


def gains_are_apart(m: Measurements) -> list[Check]:
    """Claim 2m: languages whose CKA gains more do not gain more in score."""
    found = []
    for one in _benches(m, _scores(m)):
        gains = [
            _by_language(one.on(mine, "targets")) - _by_language(one.on(yours, "targets"))
            for mine, yours in ((_cka_of(m, one.whole), _cka_of(m, one.trained)), (one.whole, one.trained))
            if len(mine) and len(yours)
        ]
        if len(gains) == 2 and len(both := _both(*gains)):
            about = f"{one.about}: ρ of gains in CKA and in score"
            found.append(_correlation(about, both, above=-UNCORRELATED, below=UNCORRELATED))
    return found


def _benches(
    m: Measurements, rows: pd.DataFrame, *, inputs: Sequence[str] = ("paired",), layers: bool = False
) -> Iterator[Bench]:
    """Give every whole X-Mixup; with ``layers`` those that name one, else those in the paper's."""
    for board, own in boards(m, rows, [*PLACE, "encoder"]):
        mixes = own[(own["method"] == "x-mixup") & (own["without"] == "") & own["inputs"].isin(inputs)]
        if mixes.empty:
            continue
        usual = mixes["method.layer"] == 0
        mixes = mixes[~usual if layers else usual | (not usual.any())]
        wholes = [whole for _, whole in mixes.groupby(["way", "inputs", "inputs.translator"])]
        for whole in wholes:
            yield Bench(
                m=m,
                board=board,
                about=board if len(wholes) == 1 else f"{board} {whole['system'].iloc[0]}",
                rows=own,
                whole=whole,
                trained=_closest(own, whole, "translate-train", "translator"),
                plain=_closest(own, whole, "source-only"),
                targets=frozenset("+".join(own["target"]).split("+")) - {""},
            )


def _closest(rows: pd.DataFrame, whole: pd.DataFrame, method: str, *same: str) -> pd.DataFrame:
    """Keep one system of a method: who translated is the same, and most of optimization; the first by id."""
    ways = rows[(rows["method"] == method) & (rows["inputs"] == "")].drop_duplicates("way").sort_values("way")
    own = whole.iloc[0]
    ways = ways[np.array([not _differing(way, own, same) for _, way in ways.iterrows()], dtype=bool)]
    apart = [len(_differing(way, own, ("optimization",))) for _, way in ways.iterrows()]
    best = ways["way"].iloc[apart.index(min(apart))] if apart else None
    return rows[(rows["way"] == best) & (rows["inputs"] == "")]


def _differing(one: "pd.Series[Any]", other: "pd.Series[Any]", groups: Iterable[str]) -> set[str]:
    """Return the columns of groups of facts ("method.mse" is one of "method") in which two rows differ."""
    columns = [name for name in one.index if str(name).split(".")[0] in groups]
    return {
        name
        for name in columns
        if one[name] != other[name] and not (pd.isna(one[name]) and pd.isna(other[name]))
    }


def _ablations(bench: Bench) -> dict[str, pd.DataFrame]:
    """Return by name what is the whole in all but one part."""
    whole, found = bench.whole.iloc[0], {}
    rows = bench.rows[bench.rows["without"].isin(ABLATIONS)]
    for _, own in rows.groupby(["without", "way", "inputs", "inputs.translator"]):
        one = own.iloc[0]
        name, silent = ABLATIONS[one["without"]]
        free = {f"method.{field}" for field in (*one["without"].split(), *silent)}
        reads = all(one[field] == whole[field] for field in ("inputs", "inputs.translator"))
        if reads and _differing(one, whole, ("method", "optimization", "translator")) <= free:
            found[name] = own
    return found


def _scores(m: Measurements) -> pd.DataFrame:
    rows = m.frame("scores")
    return best_split(_systems(rows[rows["main"].eq(True)]))


def _cka(m: Measurements) -> pd.DataFrame:
    """Return CKA with the source in the deepest layer measured, as rows of scores are."""
    rows = _systems(m.frame("cka"))
    rows = rows[_of_source(rows, "first")].dropna(subset="cka")
    named = rows.assign(language=rows["second"], score=rows["cka"].astype(float), metric="CKA", split="")
    return _deepest(named)


def _cka_of(m: Measurements, own: pd.DataFrame) -> pd.DataFrame:
    """Return the CKA of a system's models: on the corpus that was scored, or else on any."""
    rows, one = _cka(m), own.iloc[0]
    for name in ("task", "source", "encoder", "way"):
        rows = rows[rows[name] == one[name]]
    there = rows["corpus"] == one["corpus"]
    return rows[there] if there.any() else rows


def _systems(rows: pd.DataFrame) -> pd.DataFrame:
    """Keep fine-tuned models as the paper has them, and say of X-Mixup what it is ``without``."""
    added = ["encoder.adjusted", "encoder.modules", "after.method"]
    rows = rows[(rows[added] == "").all(axis=1) & (rows["source"] != "")]
    for name, option in OURS.items():
        rows = rows[rows[name].ne(option)] if name in rows else rows
    if "method.ratio_rate" in rows:
        rows = rows[rows["method.ratio_rate"].fillna(1) == 1]
    return rows.assign(without=[_without(row) for row in rows.to_dict("records")])


def _without(row: Mapping[Any, Any]) -> str:
    """Name the parts of X-Mixup that are off; without mixing λ says nothing, KL only where it is used."""
    parts = ["ratio", "learned_ratio", "schedule", "mse", *(["kl"] if row["task"] in CLASSIFICATION else [])]
    off = [one for one in parts if row["method"] == "x-mixup" and row[f"method.{one}"] == 0]
    return " ".join(one for one in off if one != "learned_ratio" or "ratio" not in off)


def _deepest(rows: pd.DataFrame) -> pd.DataFrame:
    deepest = rows.groupby(["corpus", "task", "encoder"])["layer"].transform("max")
    return rows[rows["layer"] == deepest]


def _layer(one: Bench) -> int:
    return int(one.whole["method.layer"].iloc[0])


def _tables(rows: pd.DataFrame) -> pd.DataFrame:
    """Return scores [seed language]."""
    return spoken_for(rows).pivot_table(index="seed", columns="language", values="score")


def _of_source(rows: pd.DataFrame, name: str) -> "pd.Series[bool]":
    """Tell of which rows a column has a source language."""
    own = [code in of.split("+") for code, of in zip(rows[name], rows["source"], strict=True)]
    return pd.Series(own, rows.index, dtype=bool)


def _by_language(rows: pd.DataFrame) -> "pd.Series[float]":
    """Return the mean over seeds of what models say about languages other than the source."""
    own = spoken_for(rows)
    return own[~_of_source(own, "language")].groupby("language")["score"].mean()


def _both(cka: "pd.Series[float]", score: "pd.Series[float]") -> pd.DataFrame:
    return pd.concat([cka, score], axis=1, keys=["cka", "score"]).dropna()


def _beside(checks: Mapping[str, Check], scale: float = 100, digits: int = 1) -> str:
    """Write numbers that are said and not judged."""
    said = {name: replace(one, scale=scale, digits=digits) for name, one in checks.items() if one.values}
    text = ", ".join(f"{name} {one.written(one.estimate.mean)}" for name, one in said.items())
    return f" ({text})" if text else ""


def _correlation(about: str, both: pd.DataFrame, *, above: float, below: float = math.inf) -> Check:
    """Check Spearman's ρ over languages: exact p of 0 (few languages), else by Fisher's z."""
    n = len(both)
    if n < FEWEST_LANGUAGES:
        return Check(
            about=f"{about}: {n} languages, and fewer than {FEWEST_LANGUAGES} cannot tell, not tested"
        )
    sides = [*both["cka"]], [*both["score"]]
    over = spearman(*sides)
    if math.isnan(over.rho):
        return Check(about=f"{about}: the same for every language, not tested")
    error = 1 / math.sqrt(n - 3)
    z = math.atanh(max(-ALMOST_ONE, min(ALMOST_ONE, over.rho)))

    def p_value(bound: float) -> float:
        return over.p_value if bound == 0 else math.erfc(abs(z - math.atanh(bound)) / error / math.sqrt(2))

    low, high = bootstrap_interval(*sides)
    seen = math.tanh(BOTH_QUANTILES * error)
    found = Found(mean=over.rho, low=low, high=high, test=p_value, smallest_seen=seen)
    return Check(
        about=about,
        values=sides[1],
        found=found,
        unit="language",
        scale=1,
        digits=2,
        above=above,
        below=below,
    )


def _claim(
    name: str, where: str, test: Callable[[Measurements], list[Check]], *needs: str, says: str, rule: str
) -> Claim:
    return Claim(id=name, paper=2, where=where, says=says, rule=rule, test=test, needs=needs or ("scores",))


# fmt: off
CLAIMS: Sequence[Claim] = (
    _claim("2a", "Table 3", mixup_is_above,
           says="On the targets X-Mixup is above translate-train, and translate-train above zero-shot.",
           rule=f"X-Mixup, paired, minus translate-train, and this minus source-only, above 0; {OF_TARGETS}. "
                "That the paper's effect (40 % of the gap closed, Table 8) lies outside the interval does "
                "not contradict: it is a mean of seven tasks, and POS closed 19 %."),
    _claim("2b", "Table 7, Q1", cka_rises, "cka",
           says="CKA of the source and a target language is higher within X-Mixup models.",
           rule="CKA in each encoder's and task's deepest layer measured, X-Mixup minus translate-train, "
                "above 0; mean of the languages that models were made for, t-test over seeds."),
    _claim("2c", "Table 2, Fig. 3", cka_goes_with_transfer, "scores", "cka",
           says="The higher its CKA with the source, the better a language is transferred to.",
           rule=f"Spearman's ρ over {FEWEST_LANGUAGES} languages or more of CKA within models, deepest "
                "layer, and score, means over seeds, above 0, of source-only and of translate-train; "
                "bootstrap interval over languages."),
    _claim("2d", "Tables 5 and 9", each_ablation_loses,
           says="X-Mixup loses when any of its parts is left out.",
           rule="X-Mixup, paired, minus the same with one part off, and minus itself without translations at "
                f"inference, each above 0; {OF_TARGETS}."),
    _claim("2e", "Table 6", unseen_languages_gain,
           says="Languages without any translation in training gain from X-Mixup too.",
           rule="X-Mixup, paired, minus translate-train, above 0; mean of the languages that no model was "
                "made for, test over seeds and examples. Beside it, not judged: translations at inference, "
                "and translate-test."),
    _claim("2f", "Section 4.1, Eq. 5", ratios_differ, "mixup-ratio",
           says="The mixing ratio is another for each example.",
           rule=f"Standard deviation of λ over examples divided by its mean, above {LEAST_SPREAD:g} (our "
                "bar); t-test over seeds, each the mean of the targets."),
    _claim("2g", "Table 8, Q2", gap_shrinks,
           says="The gap between the source and the targets is smaller with X-Mixup.",
           rule="Source score, unpaired, minus the targets' mean, paired: of translate-train (unpaired) "
                "minus of X-Mixup, above 0; t-test over seeds."),
    _claim("2h", "Table 7", source_gains,
           says="The source language gains too.",
           rule="Source score of X-Mixup, unpaired, minus that of translate-train, above 0; test over seeds "
                "and examples."),
    _claim("2i", "Table 9", kl_is_worth_more,
           says="In classification the consistency of predictions (KL) is worth more than that of states "
                "(MSE).",
           rule=f"X-Mixup without MSE minus X-Mixup without KL, paired, above 0; {OF_TARGETS}."),
    _claim("2j", "Table 5, Q3", training_alone_helps,
           says="Mixing in training helps even without translations at inference.",
           rule="X-Mixup, unpaired, minus translate-train (as high as Table 5's “w/o mixup” in XNLI), above "
                f"0; {OF_TARGETS}."),
    _claim("2k", "Fig. 5, Q4", layers_help,
           says="Mixing helps in any layer, but in classification not in the higher ones.",
           rule="X-Mixup trained at a layer, paired, minus translate-train, above 0, in classification at "
                f"the lower half of layers; there the lowest minus the highest too; {OF_TARGETS}."),
    _claim("2l", "Figs 1 and 4, Q1", centroids_come_closer, "representation-map",
           says="The languages' centroids lie closer together with X-Mixup.",
           rule="Share of the variance of states between languages, deepest layer: X-Mixup minus "
                "translate-train, or source-only where that has no map, below 0; t-test over seeds."),
    _claim("2m", "Table 7", gains_are_apart, "scores", "cka",
           says="A language whose CKA gains more does not therefore gain more in score.",
           rule=f"Spearman's ρ of the gains in CKA and in score on translate-train, within ±{UNCORRELATED:g} "
                f"(our bar), over {FEWEST_LANGUAGES} languages or more."),
)
# fmt: on
