"""What the second paper claims of X-Mixup, each claim with the rule it is judged by.

Paper: Yang et al. (2022), "Enhancing Cross-lingual Transfer by Manifold Mixup". The whole X-Mixup reads
inputs beside their translations ("paired"); its baseline is translate-train by the same translator, trained
most like it. Only what the paper trained counts: no adjusted encoder, modules, start or option of our own.
Targets are the languages that models were made for; a score of them is their mean.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from isogloss.metrics.correlation import bootstrap_interval, spearman
from isogloss.reports.comparison import PLACE, best_split, boards, compare, spoken_for, unit_of, where
from isogloss.reports.measurements import Measurements, once
from isogloss.reports.verdicts import HELPS, HURTS, Bounds, Check, Found, Test, check_of

CLASSIFICATION = ("nli", "paraphrase")
"""Tasks that one answer an input is given in: predictions are kept consistent by KL in these alone."""

ABLATIONS = {
    "ratio": ("without mixup", {"method.ratio", "method.learned_ratio", "method.layer"}),
    "learned_ratio": ("constant λ", {"method.learned_ratio"}),
    "schedule": ("without scheduled sampling", {"method.schedule", "method.decay"}),
    "mse": ("without MSE", {"method.mse"}),
    "kl": ("without KL", {"method.kl"}),
    "mse kl": ("without both", {"method.mse", "method.kl"}),
}
"""What can be left out (Tables 5 and 9): words, and the fields that then may differ from the whole."""

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


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A whole X-Mixup, what it is held against, and all else that was measured in the same place."""

    m: Measurements
    board: str
    about: str
    """The board, and which X-Mixup where it has several."""
    rows: pd.DataFrame
    """Everything on this encoder; ``role`` of a language is "source", "target" or "unseen"."""
    whole: pd.DataFrame
    trained: pd.DataFrame
    """Translate-train by the same translator."""
    plain: pd.DataFrame
    """Source-only."""

    @property
    def unmixed(self) -> pd.DataFrame:
        """The whole without translations at inference."""
        return self.rows[(self.rows["way"] == self.fact("way")) & (self.rows["inputs"] == "")]

    def fact(self, name: str) -> Any:
        """Return a fact of the whole."""
        return self.whole[name].iloc[0]

    def versus(
        self,
        ours: pd.DataFrame,
        theirs: pd.DataFrame,
        about: str = "",
        role: str = "target",
        bounds: Bounds = HELPS,
    ) -> Check:
        """Check a difference on languages of one role, above 0 unless bounds say otherwise."""
        both = [self.on(rows, role) for rows in (ours, theirs)]
        found = compare(self.m, *both, unit=unit_of(*both))
        return check_of(found, f"{self.about}: {about}", bounds)

    def on(self, rows: pd.DataFrame, role: str) -> pd.DataFrame:
        """Keep the rows of languages of one role; of unseen ones, every model speaks."""
        own = rows[rows["role"] == role]
        return own.assign(target="") if role == "unseen" else own


def mixup_is_above(m: Measurements) -> list[Check]:
    """Claim 2a: X-Mixup above translate-train above zero-shot, the latter once for each translate-train."""
    checks: dict[object, Check] = {}
    for one in _scored(m):
        step = one.board, *one.trained["way"].unique()
        checks[one.about] = one.versus(one.whole, one.trained, "x-mixup − translate-train")
        checks[step] = one.versus(one.trained, one.plain, "translate-train − source-only")
    return [*checks.values()]


def cka_rises(m: Measurements) -> list[Check]:
    """Claim 2b: X-Mixup models have more alike states than translate-train models."""
    found, bounds = [], {**HELPS, "scale": 1, "digits": 3}
    for one in _benches(m, _cka(m), inputs=STATES):
        also = _beside({"− source-only": one.versus(one.whole, one.plain, "", "target", bounds)})
        about = f"CKA, x-mixup − translate-train{also}"
        found.append(one.versus(one.whole, one.trained, about, "target", bounds))
    return found


def cka_goes_with_transfer(m: Measurements) -> list[Check]:
    """Claim 2c: the more alike its states are to the source's, the better a language is transferred to."""
    rows, found = _scores(m), []
    rows = rows[rows["method"].isin(["source-only", "translate-train"]) & (rows["inputs"] == "")]
    for about, own in boards(m, rows, [*PLACE, "encoder", "way"]):
        both = _by_language(_cka_of(m, own)), _by_language(own)
        least = FEWEST_LANGUAGES if own["target"].any() else 1
        found += _correlation(f"{about}: ρ of CKA and score", *both, HELPS, least=least)
    return found


def each_ablation_loses(m: Measurements) -> list[Check]:
    """Claim 2d: whatever is left out is missed."""
    return [
        one.versus(one.whole, rows, f"whole − {name}")
        for one in _scored(m)
        for name, rows in {**_ablations(one), "unmixed at inference": one.unmixed}.items()
        if len(rows)
    ]


def unseen_languages_gain(m: Measurements) -> list[Check]:
    """Claim 2e: languages without translations in training gain too."""
    found = []
    for one in _scored(m):
        reads = (one.rows["inputs.translator"] == one.fact("inputs.translator")) & (
            one.rows["inputs"] == "translated"
        )
        tested = one.rows[reads & (one.rows["method"] == "source-only")]
        beside = {
            "of it without translations at inference": one.versus(one.unmixed, one.trained, role="unseen"),
            "x-mixup − translate-test": one.versus(one.whole, tested, role="unseen"),
        }
        about = f"unseen languages, x-mixup − translate-train{_beside(beside)}"
        found.append(one.versus(one.whole, one.trained, about, "unseen"))
    return found


def ratios_differ(m: Measurements) -> list[Check]:
    """Claim 2f: the ratio is each example's own."""
    rows = _systems(m.frame("mixup-ratio"))
    rows = spoken_for(rows[(rows["method"] == "x-mixup") & (rows["without"] == "")])
    rows, found = best_split(rows.assign(metric="λ", score=rows["std"].astype(float) / rows["mean"])), []
    for about, own in boards(m, rows, [*PLACE, "encoder", "way", "inputs.translator"]):
        words = f"{about}: std of λ over examples in percent of its mean, {own['mean'].mean():.3f}"
        found += _over_seeds(words, _tables(own).dropna(), {"above": LEAST_SPREAD, "digits": 2})
    return found


def gap_shrinks(m: Measurements) -> list[Check]:
    """Claim 2g: the gap between source and targets is smaller than translate-train's."""
    found = []
    for one in _scored(m):
        sides = {"target": one.whole, "source": one.unmixed}
        gains = [
            _tables(one.on(own, role)) - _tables(one.on(one.trained, role)) for role, own in sides.items()
        ]
        target, source = (own.dropna(axis="columns", how="all").dropna().mean(axis=1) for own in gains)
        found += _over_seeds(f"{one.about}: gap of translate-train − of x-mixup", target - source, HELPS)
    return found


def kl_is_worth_more(m: Measurements) -> list[Check]:
    """Claim 2i: in classification, leaving out KL costs more than leaving out MSE."""
    return [
        one.versus(left["without MSE"], left["without KL"], "without MSE − without KL")
        for one in _scored(m)
        if {"without MSE", "without KL"} <= (left := _ablations(one)).keys()
    ]


def layers_help(m: Measurements) -> list[Check]:
    """Claim 2k: mixing in any layer helps, in classification in any lower one."""
    stacks: dict[object, list[Bench]] = {}
    for one in _benches(m, _scores(m), layers=True):
        stacks.setdefault((one.board, one.fact("inputs.translator")), []).append(one)
    found = []
    for unsorted in stacks.values():
        *_, highest = own = sorted(unsorted, key=lambda one: int(one.fact("method.layer")))
        layers = [int(one.fact("method.layer")) for one in own]
        classifies = highest.fact("task") in CLASSIFICATION
        if layers[0] < layers[-1]:
            helping = own[: (len(own) + 1) // 2] if classifies else own
            for layer, one in zip(layers, helping, strict=False):
                found.append(one.versus(one.whole, one.trained, f"layer {layer} − translate-train"))
            if classifies:
                about = f"layer {layers[0]} − layer {layers[-1]}"
                found.append(own[0].versus(own[0].whole, highest.whole, about))
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
        found.append(one.versus(one.whole, theirs, about, "source", HURTS))
    return found


def gains_are_apart(m: Measurements) -> list[Check]:
    """Claim 2m: languages whose CKA gains more do not gain more in score."""
    found = []
    for one in _scored(m):
        if len(one.trained):
            of_cka = _by_language(_cka_of(m, one.whole)) - _by_language(_cka_of(m, one.trained))
            score = _by_language(one.on(one.whole, "target")) - _by_language(one.on(one.trained, "target"))
            about = f"{one.about}: ρ of gains in CKA and in score"
            found += _correlation(about, of_cka, score, {"above": -UNCORRELATED, "below": UNCORRELATED})
    return found


@once
def _scored(m: Measurements) -> list[Bench]:
    return [*_benches(m, _scores(m))]


def _benches(
    m: Measurements, rows: pd.DataFrame, *, inputs: Sequence[str] = ("paired",), layers: bool = False
) -> Iterator[Bench]:
    """Give every whole X-Mixup; with ``layers`` those that name one, else those in the paper's."""
    for board, group in boards(m, rows, [*PLACE, "encoder"]):
        targets, sources = ({*"+".join(group[name]).split("+")} for name in ("target", "source"))
        roles = dict.fromkeys(targets, "target") | dict.fromkeys(sources, "source")
        own = group.assign(role=group["language"].map(roles).fillna("unseen"))
        mixes = own[(own["method"] == "x-mixup") & (own["without"] == "") & own["inputs"].isin(inputs)]
        usual = mixes["method.layer"] == 0 if len(mixes) else mixes["inputs"] == 0
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
            )


def _closest(rows: pd.DataFrame, whole: pd.DataFrame, method: str, *same: str) -> pd.DataFrame:
    """Keep one system of a method: who translated is the same, and most of optimization; the first by id."""
    rows, own = rows[(rows["method"] == method) & (rows["inputs"] == "")], whole.iloc[0]
    apart = {
        way["way"]: len(_differing(way, own, ["optimization"]))
        for _, way in rows.drop_duplicates("way").sort_values("way").iterrows()
        if not _differing(way, own, same)
    }
    return rows[rows["way"] == min(apart, key=apart.__getitem__, default=None)]


def _differing(one: "pd.Series[Any]", other: "pd.Series[Any]", groups: Iterable[str]) -> set[str]:
    """Return the columns of groups of facts ("method.mse" is one of "method") in which two rows differ."""
    return {
        name
        for name in one.index
        if name.split(".")[0] in groups
        and one[name] != other[name]
        and not (pd.isna(one[name]) and pd.isna(other[name]))
    }


def _ablations(bench: Bench) -> dict[str, pd.DataFrame]:
    """Return by name what is the whole in all but one part."""
    whole, found = bench.whole.iloc[0], {}
    rows = bench.rows[bench.rows["without"].isin(ABLATIONS)]
    for (without, *_), own in rows.groupby(["without", "way", "inputs", "inputs.translator"]):
        name, free = ABLATIONS[without]
        if _differing(own.iloc[0], whole, ("method", "optimization", "translator", "inputs")) <= free:
            found[name] = own
    return found


@once
def _scores(m: Measurements) -> pd.DataFrame:
    rows = m.frame("scores")
    return best_split(_systems(rows[rows["main"].eq(True)]))


@once
def _cka(m: Measurements) -> pd.DataFrame:
    """Return CKA with the source in the deepest layer measured, as rows of scores are."""
    rows = where(_systems(m.frame("cka")), lambda code, of: code in of.split("+"), "first", "source")
    rows = rows.dropna(subset="cka")
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
    about = rows[[name for name in rows if name in ("task", "method") or name.startswith("method.")]]
    return rows.assign(without=[_without(row) for row in about.to_dict("records")])


def _without(row: Mapping[Any, Any]) -> str:
    """Name the parts of X-Mixup that are off; without mixing λ says nothing, KL only where it is used."""
    parts = ["ratio", "learned_ratio", "schedule", "mse", *(["kl"] if row["task"] in CLASSIFICATION else [])]
    off = [one for one in parts if row["method"] == "x-mixup" and row.get(f"method.{one}", 1) == 0]
    return " ".join(one for one in off if one != "learned_ratio" or "ratio" not in off)


def _deepest(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["layer"] == rows.groupby(["corpus", "task", "encoder"])["layer"].transform("max")]


def _tables(rows: pd.DataFrame) -> pd.DataFrame:
    """Return scores [seed language]."""
    return spoken_for(rows).pivot_table(index="seed", columns="language", values="score")


def _by_language(rows: pd.DataFrame) -> "pd.Series[float]":
    """Return the mean over seeds of what models say about languages other than the source."""
    own = where(spoken_for(rows), lambda code, of: code not in of.split("+"), "language", "source")
    return own.groupby("language")["score"].mean()


def _beside(checks: Mapping[str, Check]) -> str:
    """Write numbers that are said and not judged."""
    said = [f"{name} {one.written(one.estimate.mean)}" for name, one in checks.items() if one.values]
    return f" ({', '.join(said)})" if said else ""


def _correlation(
    about: str, cka: "pd.Series[float]", score: "pd.Series[float]", bounds: Bounds, *, least: int = 1
) -> list[Check]:
    """Check Spearman's ρ over languages: exact p of 0 (few languages), else by Fisher's z."""
    both = pd.concat([cka, score], axis=1).dropna()
    sides = [*both.iloc[:, 0]], [*both.iloc[:, 1]]
    if (n := len(both)) < least:
        return []
    if n < FEWEST_LANGUAGES:
        return [
            Check(about=f"{about}: {n} languages, and fewer than {FEWEST_LANGUAGES} cannot tell, not tested")
        ]
    over = spearman(*sides)
    if math.isnan(over.rho):
        return [Check(about=f"{about}: the same for every language, not tested")]
    error = 1 / math.sqrt(n - 3)
    z = math.atanh(max(-ALMOST_ONE, min(ALMOST_ONE, over.rho)))

    def p_value(bound: float) -> float:
        return over.p_value if bound == 0 else math.erfc(abs(z - math.atanh(bound)) / error / math.sqrt(2))

    low, high = bootstrap_interval(*sides)
    seen = math.tanh(BOTH_QUANTILES * error)
    found = Found(mean=over.rho, low=low, high=high, test=p_value, smallest_seen=seen)
    own = Check(about=about, values=sides[1], found=found, unit="language", scale=1, digits=2)
    return [replace(own, **bounds)]


def _over_seeds(about: str, values: Any, bounds: Bounds) -> list[Check]:
    """Check values by seed, the mean of languages where there are several."""
    means = values.mean(axis=1) if isinstance(values, pd.DataFrame) else values.dropna()
    return [check_of(means, about, {"scale": 100, "digits": 1, **bounds})]


TESTS: Mapping[str, Test] = {
    "2a": mixup_is_above,
    "2b": cka_rises,
    "2c": cka_goes_with_transfer,
    "2d": each_ablation_loses,
    "2e": unseen_languages_gain,
    "2f": ratios_differ,
    "2g": gap_shrinks,
    "2h": lambda m: [
        one.versus(one.unmixed, one.trained, "source, x-mixup − translate-train", "source")
        for one in _scored(m)
    ],
    "2i": kl_is_worth_more,
    "2j": lambda m: [
        one.versus(one.unmixed, one.trained, "unmixed at inference, x-mixup − translate-train")
        for one in _scored(m)
    ],
    "2k": layers_help,
    "2l": centroids_come_closer,
    "2m": gains_are_apart,
}
