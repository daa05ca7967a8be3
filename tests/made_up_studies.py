"""Made-up measurements of adjusted encoders and of languages that share one, as frames."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from hand_made import golden
from isogloss.data.result_files import StoredPredictions
from isogloss.reports.measurements import FACTS, Measurements
from isogloss.reports.verdicts import Claim, ClaimOutcome, judge

Rows = list[dict[str, Any]]

UP = (0.050, 0.052, 0.048, 0.051, 0.049)
DOWN = tuple(-item for item in UP)
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


def scores(gains: Sequence[float], position: float = 0.5, **facts: Any) -> Rows:
    """Give a score for each seed: where all start, and the seed's gain."""
    rows = [{**MODEL, "seed": seed, "score": position + gain, **facts} for seed, gain in enumerate(gains)]
    if facts.get("encoder.adjusted"):  # Each fine-tuning seed has a separate adjusted encoder.
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
    options = {**MODEL, "first": "qaa", "second": "qad", "layer": -1, "distance": "l2", "task": task, **facts}
    return [
        {**options, "seed": seed, "related_mean": 5 + item, "unrelated_mean": 9 + item, "auc": 0.7 + two}
        for seed, (item, two) in enumerate(zip(values, aucs, strict=True))
    ]


class Judged(Mapping[str, ClaimOutcome]):
    """Outcomes of claims by id. Each claim is judged on first access, because judging all takes long."""

    def __init__(self, claims: Iterable[Claim], m: Measurements) -> None:
        self.claims = {claim.id: claim for claim in claims}
        self.m = m
        self.known: dict[str, list[ClaimOutcome]] = {}

    def __getitem__(self, name: str) -> ClaimOutcome:
        if name not in self.known:
            self.known[name] = judge([self.claims[name]], self.m)
        if not self.known[name]:
            raise KeyError(name)
        return self.known[name][0]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.claims if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def old_claim(name: str, letter: str) -> str:
    """Return the numbers of an old claim."""
    return str(next(claim["number"] for claim in golden(name)["claims"] if claim["letter"] == letter))


# Encoders pretrained here.


def pretrained_facts(modules: str = "", languages: str = "qaa+qad", **facts: Any) -> dict[str, Any]:
    """Give the facts of an encoder pretrained from scratch."""
    name = f"{modules or 'plain'}-{languages}-{'-'.join(map(str, facts.values()))}"
    options = {"languages": languages, "modules": modules, "method": "masked-language-modelling", "lines": ""}
    options |= {"layers": 4, "text": "made", "method.steps": 100}
    options |= {"method.inner_step": None, "method.second_order": None}
    options |= {item.replace("__", "."): value for item, value in facts.items()}
    return {
        **{f"encoder.{item}": value for item, value in options.items()},
        **{"encoder": name, "encoder.original": name, "encoder.kind": "pretrain"},
    }


def meta(**facts: Any) -> dict[str, Any]:
    """Give the facts of meta-learned adapters, by Algorithm 1 unless said."""
    paper = {"method": "meta-learning", "method__inner_step": "plain", "method__second_order": "exact"}
    return pretrained_facts("adapter", **{**paper, **facts})


def seeds(encoder: dict[str, Any], values: Sequence[float], position: float = 0.5, **facts: Any) -> Rows:
    """Give a score for each pretraining seed: where all start, and the seed's gain."""
    return [
        {**row, "encoder.seed": row["seed"], "encoder.run": f"{row['encoder']}-{row['seed']}"}
        for row in scores(values, position, **{"task": "upos", **encoder, **facts})
    ]


WITHIN = {"language": "qaa"}
ZERO_SHOT = {"language": "qad"}


def halves(encoder: dict[str, Any], inner_value: Sequence[float], zero_shot: Sequence[float]) -> Rows:
    """Give scores of an encoder within a language and zero-shot."""
    return [*seeds(encoder, inner_value, **WITHIN), *seeds(encoder, zero_shot, **ZERO_SHOT)]


def similar(encoder: dict[str, Any], seed: int, parts: dict[tuple[Any, str], float], **facts: Any) -> Rows:
    """Return the cosine of two languages by layer and module, and .8 of each with itself."""
    options = {
        **MODEL,
        **ENCODER,
        **encoder,
        "encoder.seed": seed,
        **dict.fromkeys(("run", "model", "encoder.run"), f"{encoder['encoder']}-{seed}"),
    }
    pairs = [("qaa", "qaa"), ("qaa", "qad"), ("qad", "qad")]
    return [
        {
            **{
                **options,
                "layer": layer,
                "module": module,
                "first": first_pair,
                "second": second,
                "draw": draw,
            },
            **{
                "cosine": value if first_pair != second else 0.8,
                "correlation": value if first_pair != second else 0.8,
            },
            **{"overlap": 0.5, "within": 0.8, **facts},
        }
        for ((layer, module), value), (first_pair, second), draw in product(parts.items(), pairs, range(3))
    ]


def layer_cosines(slope: float, attention: float = 0.1) -> dict[tuple[Any, str], float]:
    """Give cosines that change with the layer, and are higher in attention."""
    layers = {(float(layer), "all"): 0.5 + slope * layer for layer in (1, 2, 3, 4)}
    return {**layers, (np.nan, "attention"): 0.3 + attention, (np.nan, "feed-forward"): 0.3}


def kind_cosines(slope: float, attention: float = 0.1) -> dict[tuple[Any, str], float]:
    """Give the same with each kind of module apart, as gates are compared."""
    whole_layer_cosines = layer_cosines(slope, attention)
    layers = {
        (layer, kind): value
        for (layer, name), value in whole_layer_cosines.items()
        if name == "all"
        for kind in ("attention", "feed-forward")
    }
    return {**layers, **{part: value for part, value in whole_layer_cosines.items() if part[1] != "all"}}


def right_or_wrong(share: float, examples: int = 400) -> dict[str, StoredPredictions]:
    """Return predictions, this share of them right."""
    right = (np.arange(examples) < round(share * examples)).astype(float)
    ids = tuple(str(index) for index in range(examples))
    return {
        language: StoredPredictions(ids=ids, measures={"accuracy": (right, np.ones(examples))})
        for language in ("qaa", "qad")
    }
