"""A path: scoring points between two models, as one would with Trainer, and in place."""

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest.mock import patch

import torch
from safetensors.torch import load_file, save_file

from foreign import trainer
from isogloss.features.landscapes import scored_points
from isogloss.features.landscapes.diagnostic import COARSE, Interpolation
from isogloss.diagnostics.setting import MeasureSetting, Subject
from isogloss.encoders.computation import fastest_attention
from isogloss.encoders.loading import load_model
from isogloss.features.landscapes.remembering import LARGEST, RememberedStates
from isogloss.tasks.tagging import UPOS
from isogloss.training.evaluation import evaluation
from isogloss.training.parallel_text import BitextSentences
from material import Material

WEIGHTS = "model.safetensors"

HEAD_MOVES = "isogloss, only the head moves"
STATES_EACH_TIME = "isogloss, only the head moves, states computed at each point"


@dataclass(frozen=True)
class Walk:
    """Seconds of process time for all points, and the scores found."""

    name: str
    precision: str
    seconds: float
    scores: list[float]


def walks(material: Material, *, points: int) -> list[Walk]:
    """Score the first ``points`` of the paper's 21 values, Trainer's way and ours."""
    alphas = COARSE[:points]
    other_path = _other_model(material.folder)
    return [
        _theirs("Trainer, padded to 128", material, other_path, alphas, pad_to=128),
        _ours("isogloss, float32", material, other_path, alphas, "float32"),
        _theirs("Trainer, dynamic padding", material, other_path, alphas, pad_to=None),
        _ours("isogloss, bfloat16", material, other_path, alphas, "bfloat16"),
        _ours(STATES_EACH_TIME, material, other_path, alphas, "float32", head=0),
        _ours(HEAD_MOVES, material, other_path, alphas, "float32", head=LARGEST),
    ]


def _other_model(folder: Path) -> Path:
    """Write a second model, a little way off."""
    other_folder = folder.with_name("other")
    other_folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        (other_folder / path.name).write_bytes(path.read_bytes())
    torch.manual_seed(1)
    weights = {
        name: tensor + 0.02 * torch.randn_like(tensor) for name, tensor in load_file(folder / WEIGHTS).items()
    }
    save_file(weights, other_folder / WEIGHTS, metadata={"format": "pt"})
    return other_folder


def _theirs(
    name: str, material: Material, other_path: Path, alphas: tuple[float, ...], *, pad_to: int | None
) -> Walk:
    """At each point: load both files, mix, predict."""
    run = trainer(material, pad_to=pad_to)
    start = time.process_time()
    scores = []
    for alpha in alphas:
        first_file = load_file(material.folder / WEIGHTS)
        second = load_file(other_path / WEIGHTS)
        weights = {key: (1 - alpha) * first_file[key] + alpha * second[key] for key in first_file}
        run.model.load_state_dict(weights)
        output = run.predict(material.features)
        is_real = output.label_ids != -100
        scores.append(float((output.predictions.argmax(-1) == output.label_ids)[is_real].mean()))
    return Walk(name, "float32", time.process_time() - start, scores)


def _ours(
    name: str,
    material: Material,
    other_path: Path,
    alphas: tuple[float, ...],
    precision: str,
    *,
    head: int | None = None,
) -> Walk:
    """Walk the path with the diagnostic itself, models loaded and data encoded on the clock.

    ``head`` moves only the head, with so many bytes for the encoder's states.
    """
    start = time.process_time()
    subjects = tuple(
        Subject(id=str(folder), rows=(), folder=folder) for folder in (material.folder, other_path)
    )
    setting = MeasureSetting(
        subjects=subjects,
        languages=("qaa",),
        split="dev",
        source=("qaa",),
        load=lambda subject: UPOS.head(subject.folder, seed=0, attention=fastest_attention()),
        evaluation=lambda _: evaluation(
            UPOS, material.sentences, material.tokenizer, material.optimization(precision)
        ),
        encoder=lambda subject: (load_model(subject.folder), material.tokenizer),
        bitext=lambda _: [],
        parallel=BitextSentences(lambda _: []),
    )
    part = "all" if head is None else "head"
    with patch.object(scored_points, "RememberedStates", partial(RememberedStates, largest=head or 0)):
        rows = Interpolation(alphas=alphas, part=part).measure(setting)
    return Walk(name, precision, time.process_time() - start, [row.score for row in rows])
