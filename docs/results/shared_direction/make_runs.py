"""Train and score the models of the shared direction: `python make_runs.py OUT DATA SEEDS`.

DATA is what make_files.py writes, and SEEDS are digits as in 0123. OUT/SEED.csv receives a row for each task,
target and way to leave the source-only model without a label of the target (and with its labels: own).
"""

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor, nn

import isogloss
from isogloss.core.identity import derive
from isogloss.reports.measurements import read_measurements
from isogloss.runs.fine_tune import FineTune

HERE = Path(__file__).parent
LANGUAGES = ("qab", "qac", "qad", "qae", "qaf", "qag", "qah", "qai")
GROUPS = {
    ("qab", "qac", "qae", "qai"): ("qad", "qaf", "qag"),
    ("qad", "qag"): ("qab", "qae", "qaf"),
    ("qaf", "qah"): ("qab", "qad", "qae"),
}
"""Targets by order of subject, verb and object (SVO, SOV, VSO), and three languages of other groups."""

DIRECTIONS = tuple(sorted({language for languages in GROUPS.values() for language in languages}))
"""Languages with a bilingual model."""

TASKS = {"upos": "tags.toml", "text-classification": "subjects.toml"}
SENTENCES = 150
SOURCE = "qaa"
LONGER = ("longer", "longer, lower rate", "longer, higher rate")


def random_like(model: nn.Module, direction: Mapping[str, Tensor], seed: int) -> dict[str, Tensor]:
    """Return a random direction that is as long as another one in each parameter."""
    drawn = isogloss.random_direction(model, seed=seed)
    generator = torch.Generator().manual_seed(derive(seed, "vectors"))
    for name, change in direction.items():
        if not drawn[name].any():  # Norms and biases, which landscapes leave where they are.
            drawn[name] = torch.randn(change.shape, generator=generator)
        drawn[name] *= change.norm() / drawn[name].norm()
    return drawn


def difference(model: nn.Module, origin: nn.Module) -> dict[str, Tensor]:
    """Return the difference of the parameters of two models."""
    start = dict(origin.named_parameters())
    return {name: (weight - start[name]).detach() for name, weight in model.named_parameters()}


def cosine(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> float:
    """Return the cosine of two directions over all parameters."""
    left = torch.cat([change.flatten() for change in first.values()])
    right = torch.cat([second[name].flatten() for name in first])
    return float(torch.nn.functional.cosine_similarity(left, right, dim=0))


class Study:
    """Finished models of a task by recipe label, target and seed, and the test sets."""

    def __init__(self, folder: Path, task: str, data: Path) -> None:
        self.folder = folder
        measurements = read_measurements(folder)
        labels = {key: label for label, ids in measurements.methods.items() for key in ids}
        runs = {key: run for key, run in measurements.runs.items() if isinstance(run, FineTune)}
        self.folders = {
            (labels[key], "+".join(run.target), run.seed): key for key, run in runs.items() if key in labels
        }
        self.tests = {language: read_test(task, language, data) for language in (SOURCE, *LANGUAGES)}

    def model(self, label: str, target: str, seed: int) -> isogloss.Model:
        """Load a model."""
        return isogloss.load_model(self.folder / self.folders[label, target, seed])

    def successive_seeds(self, seed: int) -> list[int]:
        """Return a seed and the next two that were trained, from the first after the last."""
        seeds = sorted(number for label, _, number in self.folders if label == "source-only")
        start = seeds.index(seed)
        return [seeds[(start + step) % len(seeds)] for step in range(3)]

    def score(self, model: isogloss.Model, network: nn.Module, language: str) -> float:
        """Return the accuracy of a network in a language, in percent."""
        inputs, gold = self.tests[language]
        answers = replace(model, network=network).predict(inputs)
        pairs = [
            (answer, right)
            for answers_of_text, gold_of_text in zip(answers, gold, strict=True)
            for answer, right in (
                zip(answers_of_text, gold_of_text, strict=True)
                if isinstance(gold_of_text, tuple)
                else [(answers_of_text, gold_of_text)]
            )
        ]
        return 100 * sum(answer == right for answer, right in pairs) / len(pairs)


def read_test(task: str, language: str, data: Path) -> tuple[list, list]:
    """Return inputs and gold answers of test sentences."""
    if task == "upos":
        sentences = isogloss.load_corpus("ud", language, "test", examples=SENTENCES)
        return [list(sentence.words) for sentence in sentences], [sentence.tags for sentence in sentences]
    path = data / "subjects" / language / "test.tsv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    rows = rows[: 2 * SENTENCES]
    return [row["text"] for row in rows], [row["class"] for row in rows]


def score_seed(study: Study, seed: int) -> Iterator[dict[str, object]]:
    """Yield the scores of all ways to leave the source-only model of a seed."""
    source = study.model("source-only", "", seed)
    start = source.network
    bilingual = {language: study.model("bilingual", language, seed).network for language in DIRECTIONS}
    soups = {
        "soup of source seeds": [
            study.model("source-only", "", later).network for later in study.successive_seeds(seed)
        ],
        "soup of longer sources": [study.model(label, "", seed).network for label in LONGER],
    }
    fixed = {"source": start, "longer": soups["soup of longer sources"][0]}
    fixed |= {name: isogloss.average(models) for name, models in soups.items()}
    start_score = study.score(source, start, SOURCE)
    for group, languages in GROUPS.items():
        models = [start, *(bilingual[language] for language in languages)]
        arms = {
            f"outside {alpha}": isogloss.average(models, [1 - alpha, *([alpha / 3] * 3)])
            for alpha in (0.5, 1.0)
        }
        mean = difference(arms["outside 1.0"], start)
        arms["random"] = isogloss.move(start, random_like(start, mean, derive(seed, *group)), 1.0)
        arms["joint"] = study.model("joint", "+".join(languages), seed).network
        source_scores = {"source": start_score}
        source_scores |= {name: study.score(source, arms[name], SOURCE) for name in ("outside 1.0", "joint")}
        for target in group:
            with_labels = {"own": bilingual[target]} if target in bilingual else {}
            for name, network in (fixed | arms | with_labels).items():
                row = {"seed": seed, "target": target, "arm": name}
                row["score"] = round(study.score(source, network, target), 4)
                if name in source_scores:
                    row["source_score"] = round(source_scores[name], 4)
                if name == "outside 1.0" and with_labels:
                    row["cosine_with_own"] = round(cosine(mean, difference(with_labels["own"], start)), 4)
                yield row


def train(folder: Path, data: Path, seeds: Sequence[int]) -> None:
    """Train the models of some seeds."""
    for task, recipe in TASKS.items():
        isogloss.run(
            HERE / recipe,
            out=folder / task,
            data=data if task != "upos" else None,
            changes={"grid.seeds": list(seeds)},
            engine="serial",
            report=False,
        )


def score(folder: Path, data: Path, seeds: Sequence[int]) -> None:
    """Score the models of some seeds."""
    studies = {task: Study(folder / task, task, data) for task in TASKS}
    for seed in seeds:
        tables = [pd.DataFrame(score_seed(study, seed)).assign(task=task) for task, study in studies.items()]
        pd.concat(tables).to_csv(folder / f"{seed}.csv", index=False)


if __name__ == "__main__":
    digits = [int(digit) for digit in sys.argv[3]]
    train(Path(sys.argv[1]), Path(sys.argv[2]), digits)
    score(Path(sys.argv[1]), Path(sys.argv[2]), digits)
