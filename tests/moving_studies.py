"""Made-up studies whose paths are measured at other points than a regular grid's, with sentences."""

from pathlib import Path

import numpy as np

from made_up_runs import (
    Content,
    keep_predictions,
    keep_sentences,
    measure,
    model,
    path,
    scores,
    write,
    write_plan,
)

ALPHAS = {
    "even": [0.0, 0.25, 0.5, 0.75, 1.0],
    "crowded": [-0.5, -0.1, -0.05, -0.02, 0.0, 0.02, 0.05, 0.1, 0.5, 0.9, 0.97, 1.0, 1.03, 1.1, 1.5],
    "without the start": [0.1, 0.7, 1.0, 1.5],
    "without the end": [-0.5, 0.0, 1 / 3, 0.8],
    "two": [0.0, 1.0],
}
"""Values of α at which a path is measured."""

TAGS = ("NOUN", "VERB", "ADJ")

WORDS = ("tuki", "mirne", "baboza", "vuso")


def moving_study(folder: Path, index: int, *grids: str) -> None:
    """Write a study with a pair of languages for each grid of α. Scores and sentences are drawn by number."""
    random = np.random.default_rng(index)
    runs = []
    for seed in range(1 + index % 3):
        single_model = model(seed=seed)
        targets = dict(zip(("qab", "qad", "qae"), grids, strict=False))
        runs += _write_scores(
            folder, single_model, {language: random.uniform(0.3, 0.99) for language in ("qaa", *targets)}
        )
        for target, grid in targets.items():
            models = model("bilingual", target=[target], seed=seed)
            runs += _write_scores(
                folder, models, {language: random.uniform(0.5, 0.99) for language in ("qaa", target)}
            )
            rows = [
                row
                for language in ("qaa", target)
                for row in path(
                    single_model, models, {alpha: random.uniform(0.2, 1) for alpha in ALPHAS[grid]}, language
                )
            ]
            content = measure("interpolation", [single_model, models], languages=["qaa", target])
            runs.append(write(folder, content, rows))
            sentences = [_sentence(random, ALPHAS[grid]) for _ in range(2)]
            keep_sentences(folder, runs[-1], sentences, language=target)
    write_plan(folder, list(dict.fromkeys(runs)))


def _write_scores(folder: Path, content: Content, samples_by_language: dict[str, float]) -> list[str]:
    """Write a model and its scores, with predictions, this share of them right."""
    measurement = measure("scores", [content], languages=list(samples_by_language))
    runs = [write(folder, content), write(folder, measurement, scores(content, samples_by_language))]
    keep_predictions(folder, runs[-1], samples_by_language, examples=40)
    return runs


def _sentence(random: np.random.Generator, alphas: list[float]) -> Content:
    """Return a sentence with drawn gold tags, and tags that change between some neighbouring points."""
    gold = random.choice(TAGS, 4)
    tags = random.choice(TAGS, 4)
    predicted_alphas = []
    for alpha in alphas:
        tags = random.choice(TAGS, 4) if random.random() < 0.6 else tags
        predicted_alphas.append([alpha, tags.tolist()])
    return {"units": WORDS, "gold": gold.tolist(), "predicted": predicted_alphas}
