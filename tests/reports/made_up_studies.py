"""Made-up measurements of adjusted encoders and of languages that share one, as frames."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from hand_made import golden

from isogloss.data.result_files import StoredPredictions
from isogloss.reports.measurements import FACTS, Measurements
from isogloss.reports.verdicts import Claim, ClaimOutcome, judge

Rows = list[dict[str, Any]]

UP = (0.050, 0.052, 0.048, 0.051, 0.049)
DOWN = tuple(-one for one in UP)
NOISY = (0.09, -0.08, 0.02, -0.06, 0.05)
FLAT = (0.001, -0.001, 0.0, 0.0005, -0.0005)

HOW = "cross-lingual-adjustment"
MODEL = {
    **dict.fromkeys(FACTS, ""),
    **{"kind": "model", "corpus": "made", "treebank": "", "inputs": "", "inputs.translator": ""},
    **{"split": "test", "metric": "accuracy", "main": True, "examples": 0, "task": "nli", "source": "qaa"},
    **{"method": "source-only", "way": "source-only", "encoder": "original", "encoder.run": "original"},
    **{"encoder.seed": None, "encoder.kind": "pretrained", "encoder.original": "original"},
    **{"encoder.size": None, "optimization.epochs": 1, "seed": None, "language": "qad"},
}
ADJUSTED = {
    **{"encoder.adjusted": HOW, "encoder.pairs": "qaa-qad", "encoder.size": 300, "encoder.depth": 1},
    **{"encoder.adjusted.pulled": "all", "encoder.adjusted.word": "average"},
}
CONTINUAL = {
    **{"method": "source-only + alignment-loss", "way": "continual", "target": "qad"},
    **{"auxiliary": "alignment-loss", "auxiliary.method": "source-only"},
}
ENCODER = {"kind": "encoder", "task": "", "source": "", "method": "", "way": ""}


def scores(gains: Sequence[float], at: float = 0.5, **facts: Any) -> Rows:
    """Give a score for each seed: where all start, and the seed's gain."""
    rows = [{**MODEL, "seed": seed, "score": at + gain, **facts} for seed, gain in enumerate(gains)]
    if facts.get("encoder.adjusted"):  # Each fine-tuning seed has an adjusted encoder of its own.
        rows = [{**row, "encoder.run": f"{row['encoder.run']}-{row['seed']}"} for row in rows]
    return [{**row, "run": f"{row['encoder']}-{row['task']}-{row['way']}-{row['seed']}"} for row in rows]


def adjusted_facts(size: int | None = 300, pulled: str = "all") -> dict[str, Any]:
    """Give the facts of an adjusted encoder."""
    name = f"adjusted-{size}-{pulled}"
    facts = {"encoder.size": size, "encoder.adjusted.pulled": pulled, "encoder": name, "encoder.run": name}
    return {**ADJUSTED, **facts}


def gains(task: str, values: Sequence[float], **facts: Any) -> Rows:
    """Give scores of the original and of an adjusted encoder that is better by these values."""
    original = scores([0.0] * len(values), task=task, **facts)
    return [*original, *scores(values, task=task, **{**adjusted_facts(), **facts})]


def distances(task: str, values: Sequence[float], auc: Sequence[float] = (), /, **facts: Any) -> Rows:
    """Give distances of related words (5 with this change) and unrelated ones (9), and AUC, for each seed."""
    aucs = auc or [0.0] * len(values)
    about = {**MODEL, "first": "qaa", "second": "qad", "layer": -1, "distance": "l2", "task": task, **facts}
    return [
        {**about, "seed": seed, "related_mean": 5 + one, "unrelated_mean": 9 + one, "auc": 0.7 + two}
        for seed, (one, two) in enumerate(zip(values, aucs, strict=True))
    ]


@dataclass(frozen=True)
class Judged:
    """Outcomes by id. Each claim is judged on first access."""

    claims: tuple[Claim, ...]
    m: Measurements

    def __getitem__(self, name: str) -> ClaimOutcome:
        return judge([one for one in self.claims if one.id == name], self.m)[0]


def outcomes(claims: Iterable[Claim], m: Measurements) -> dict[str, ClaimOutcome]:
    """Judge claims, by id."""
    return {one.claim.id: one for one in judge([*claims], m)}


def old_claim(name: str, letter: str) -> str:
    """Return the numbers of an old claim."""
    return str(next(one["number"] for one in golden(name)["claims"] if one["letter"] == letter))


# Encoders pretrained here.


def pretrained_facts(modules: str = "", languages: str = "qaa+qad", **facts: Any) -> dict[str, Any]:
    """Give the facts of an encoder pretrained from scratch."""
    name = f"{modules or 'plain'}-{languages}-{'-'.join(map(str, facts.values()))}"
    about = {"languages": languages, "modules": modules, "method": "masked-language-modelling", "lines": ""}
    about |= {"layers": 4, "text": "made", "method.steps": 100}
    about |= {"method.inner_step": None, "method.second_order": None}
    about |= {one.replace("__", "."): value for one, value in facts.items()}
    return {
        **{f"encoder.{one}": value for one, value in about.items()},
        **{"encoder": name, "encoder.original": name, "encoder.kind": "pretrain"},
    }


def meta(**facts: Any) -> dict[str, Any]:
    """Give the facts of meta-learned adapters, by Algorithm 1 unless said."""
    paper = {"method": "meta-learning", "method__inner_step": "plain", "method__second_order": "exact"}
    return pretrained_facts("adapter", **{**paper, **facts})


def seeds(encoder: dict[str, Any], values: Sequence[float], at: float = 0.5, **facts: Any) -> Rows:
    """Give a score for each pretraining seed: where all start, and the seed's gain."""
    return [
        {**row, "encoder.seed": row["seed"], "encoder.run": f"{row['encoder']}-{row['seed']}"}
        for row in scores(values, at, **{"task": "upos", **encoder, **facts})
    ]


WITHIN, ZERO_SHOT = {"language": "qaa"}, {"language": "qad"}


def halves(encoder: dict[str, Any], within: Sequence[float], zero_shot: Sequence[float]) -> Rows:
    """Give scores of an encoder within a language and zero-shot."""
    return [*seeds(encoder, within, **WITHIN), *seeds(encoder, zero_shot, **ZERO_SHOT)]


def similar(encoder: dict[str, Any], seed: int, parts: dict[tuple[Any, str], float], **facts: Any) -> Rows:
    """Return the cosine of two languages by layer and module, and .8 of each with itself."""
    about = {
        **MODEL,
        **ENCODER,
        **encoder,
        "encoder.seed": seed,
        **dict.fromkeys(("run", "model", "encoder.run"), f"{encoder['encoder']}-{seed}"),
    }
    pairs = [("qaa", "qaa"), ("qaa", "qad"), ("qad", "qad")]
    return [
        {
            **{**about, "layer": layer, "module": module, "first": first, "second": second, "draw": draw},
            **{"cosine": value if first != second else 0.8, "correlation": value if first != second else 0.8},
            **{"overlap": 0.5, "within": 0.8, **facts},
        }
        for ((layer, module), value), (first, second), draw in product(parts.items(), pairs, range(3))
    ]


def layer_cosines(slope: float, attention: float = 0.1) -> dict[tuple[Any, str], float]:
    """Give cosines that change with the layer, and are higher in attention."""
    layers = {(float(layer), "all"): 0.5 + slope * layer for layer in (1, 2, 3, 4)}
    return {**layers, (np.nan, "attention"): 0.3 + attention, (np.nan, "feed-forward"): 0.3}


def kind_cosines(slope: float, attention: float = 0.1) -> dict[tuple[Any, str], float]:
    """Give the same with each kind of module apart, as gates are compared."""
    whole = layer_cosines(slope, attention)
    layers = {
        (layer, kind): value
        for (layer, one), value in whole.items()
        if one == "all"
        for kind in ("attention", "feed-forward")
    }
    return {**layers, **{part: value for part, value in whole.items() if part[1] != "all"}}


def right_or_wrong(share: float, examples: int = 400) -> dict[str, StoredPredictions]:
    """Return predictions, this share of them right."""
    right = (np.arange(examples) < round(share * examples)).astype(float)
    ids = tuple(map(str, range(examples)))
    return {
        code: StoredPredictions(ids=ids, measures={"accuracy": (right, np.ones(examples))})
        for code in ("qaa", "qad")
    }
