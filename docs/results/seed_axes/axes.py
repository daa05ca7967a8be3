"""In which directions do seeds differ? `python docs/results/seed_axes/axes.py RUNS`.

RUNS has the folders tags/ and names/ (the commands are in README.md). Four tables are written: scores.csv,
gram.csv (inner products of the models' deviations from their mean), walk.csv and fisher.csv. table.py reads
them.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

import isogloss
from isogloss.core.identity import derive
from isogloss.core.run_parts import Optimization
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.tasks import TASKS
from isogloss.training.evaluation import Evaluation, evaluation

HERE = Path(__file__).parent
STUDIES = {"tags": ("upos", "ud"), "names": ("ner", "wikiann")}
SETS = ("orders", "heads")
SEEDS = range(20)
SOURCE = "qaa"
TARGETS = ("qab", "qac", "qad", "qae", "qaf", "qag", "qah", "qai")
WALKED = (SOURCE, "qab", "qad", "qaf", "qah")
SENTENCES = 150
NULL_DRAWS = 99
STEP = 0.01
"""Half the step of the derivative of the logits, as a share of a direction."""

Direction = Mapping[str, Tensor]


@dataclass(frozen=True, kw_only=True)
class Models:
    """Twenty models that differ only in the order of examples or in the head, and their test sets."""

    networks: Sequence[nn.Module]
    tests: Mapping[str, Evaluation]

    def deviations(self, centre: nn.Module) -> list[dict[str, Tensor]]:
        """Return the difference of each model from a centre, by parameter."""
        start = dict(centre.named_parameters())
        return [
            {name: (weight - start[name]).detach() for name, weight in network.named_parameters()}
            for network in self.networks
        ]


def read_models(folder: Path, study: str, kind: str) -> Models:
    """Load the twenty models of a set."""
    task, corpus = STUDIES[study]
    records = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*/record.json")]
    ids = {
        (record["run"]["optimization"]["head_seed"], record["run"]["seed"]): record["id"]
        for record in records
        if record["kind"] == "fine-tune"
    }
    places = [(0, seed) if kind == "orders" else (seed, 0) for seed in SEEDS]
    folders = [folder / ids[place] for place in places]
    tokenizer = load_tokenizer(folders[0] / "model")
    return Models(
        networks=[isogloss.load_model(path).network for path in folders],
        tests={
            language: evaluation(
                TASKS[task],
                isogloss.load_corpus(corpus, language, "test", examples=SENTENCES),
                tokenizer,
                Optimization(),
                language=language,
            )
            for language in (SOURCE, *TARGETS)
        },
    )


def flat(direction: Direction) -> Tensor:
    """Return all parameters of a direction as one vector."""
    return torch.cat([change.flatten() for change in direction.values()])


def random_like(direction: Direction, *seed: Any) -> dict[str, Tensor]:
    """Return a random direction that is as long as another one in each parameter."""
    generator = torch.Generator().manual_seed(derive(0, *map(str, seed)))
    drawn = {name: torch.randn(change.shape, generator=generator) for name, change in direction.items()}
    return {name: drawn[name] * (change.norm() / drawn[name].norm()) for name, change in direction.items()}


def score_models(models: Models) -> Iterator[dict[str, object]]:
    """Yield the score of each model in each language, in percent."""
    for seed, network in zip(SEEDS, models.networks, strict=True):
        for language, test in models.tests.items():
            yield {"seed": seed, "language": language, "score": round(100 * test.score(network), 4)}


def gram_of(directions: Sequence[Direction]) -> Tensor:
    """Return the inner products of directions after their mean is subtracted."""
    vectors = torch.stack([flat(direction) for direction in directions])
    centred = vectors - vectors.mean(dim=0)
    return centred @ centred.T


def first_share(gram: Tensor) -> float:
    """Return the share of the first principal axis."""
    return float(torch.linalg.eigvalsh(gram.double())[-1] / gram.double().trace())


def write_gram(deviations: Sequence[Direction]) -> Iterator[dict[str, object]]:
    """Yield the inner products, and in the rows of each null draw the share of its first axis."""
    for row, values in enumerate(gram_of(deviations).tolist()):
        for column, value in enumerate(values):
            yield {"draw": "models", "row": row, "column": column, "value": value}
    for draw in range(NULL_DRAWS):
        drawn = [
            random_like(deviation, "spectrum", draw, index) for index, deviation in enumerate(deviations)
        ]
        yield {"draw": draw, "value": first_share(gram_of(drawn))}


def axes_of(deviations: Sequence[Direction]) -> list[dict[str, Tensor]]:
    """Return the principal axes, the first one first, each as long as a deviation on average."""
    values, vectors = torch.linalg.eigh(gram_of(deviations).double())
    length = torch.stack([flat(deviation).norm() for deviation in deviations]).mean()
    axes = []
    for index in range(len(deviations) - 1, 0, -1):  # The mean takes one dimension: the first value is 0.
        weights = (vectors[:, index] / values[index].sqrt() * length).float()
        axes.append(
            {
                name: torch.einsum(
                    "m,m...->...", weights, torch.stack([deviation[name] for deviation in deviations])
                )
                for name in deviations[0]
            }
        )
    return axes


def walk(models: Models, centre: nn.Module, axes: Sequence[Direction]) -> Iterator[dict[str, object]]:
    """Yield the change of each score along each axis and its random direction, in both senses, in points."""
    starts = {language: models.tests[language].score(centre) for language in WALKED}
    for index, axis in enumerate(axes):
        for kind, direction in (("axis", axis), ("random", random_like(axis, "walk", index))):
            for alpha in (-1.0, 1.0):
                moved = isogloss.move(centre, direction, alpha)
                for language in WALKED:
                    change = 100 * (models.tests[language].score(moved) - starts[language])
                    yield {
                        "kind": kind,
                        "axis": index,
                        "alpha": alpha,
                        "language": language,
                        "change": round(change, 4),
                    }


def fisher(model: nn.Module, direction: Direction, test: Evaluation, probabilities: Tensor) -> float:
    """Return δᵀFδ: the mean over words of the variance of J δ under the model's own probabilities."""
    ahead_scores, behind_scores = (
        torch.cat(test.scores(isogloss.move(model, direction, alpha))).double() for alpha in (STEP, -STEP)
    )
    slope = (ahead_scores - behind_scores) / (2 * STEP)
    mean = (probabilities * slope).sum(dim=-1, keepdim=True)
    return float((probabilities * (slope - mean) ** 2).sum(dim=-1).mean())


def measure_fisher(models: Models) -> Iterator[dict[str, object]]:
    """Yield δᵀFδ of each language along the deviations from the first model, and along random directions."""
    start = models.networks[0]
    directions = models.deviations(start)[1:]
    randoms = [random_like(direction, "fisher", index) for index, direction in enumerate(directions)]
    for language, test in models.tests.items():
        probabilities = torch.cat(test.scores(start)).double().softmax(dim=-1)
        entropy = float(torch.special.entr(probabilities).sum(dim=-1).mean())
        yield {"language": language, "what": "entropy", "number": 0, "value": entropy}
        for kind, chosen_directions in (("seeds", directions), ("random", randoms)):
            for index, direction in enumerate(chosen_directions):
                value = fisher(start, direction, test, probabilities)
                yield {"language": language, "what": kind, "number": index, "value": value}


def main(runs: Path) -> None:
    """Write the four tables."""
    tables: dict[str, list[dict[str, object]]] = {"scores": [], "gram": [], "walk": [], "fisher": []}
    for study in STUDIES:
        for kind in SETS:
            models = read_models(runs / study, study, kind)
            centre = isogloss.average(list(models.networks))
            deviations = models.deviations(centre)
            parts = {
                "scores": score_models(models),
                "gram": write_gram(deviations),
                "walk": walk(models, centre, axes_of(deviations)),
                "fisher": measure_fisher(models),
            }
            for name, rows in parts.items():
                tables[name] += [{"task": study, "set": kind, **row} for row in rows]
                print(study, kind, name, flush=True)
    for name, rows in tables.items():
        pd.DataFrame(rows).to_csv(HERE / f"{name}.csv", index=False, float_format="%.6g")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
