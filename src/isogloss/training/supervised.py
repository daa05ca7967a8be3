"""Fine-tuning on labelled examples of some languages: what plain methods share."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isogloss.core.records import Value
from isogloss.core.seeds import derive
from isogloss.encoders import load_tokenizer, offer_explicit_attention
from isogloss.tasks.batch import Batch, EncodedRow, collate
from isogloss.training.batching import Bucketed
from isogloss.training.checkpoints import Checkpoints
from isogloss.training.evaluation import evaluation
from isogloss.training.fit import Note, Watch, fit
from isogloss.training.optimizer import Schedule
from isogloss.training.setting import Setting

ABOVE_CHANCE = 0.01
"""A model whose best dev score is not this much above the commonest label's has learned nothing."""


@dataclass(frozen=True)
class Trained:
    """A model, its tokenizer, the rows its training left, and what there is to warn of."""

    model: Any
    tokenizer: Any
    rows: list[dict[str, Value]]
    warnings: tuple[str, ...] = ()


def fine_tune(setting: Setting, languages: tuple[str, ...]) -> Trained:
    """Train encoder and head on the languages' train splits; their dev splits choose the epoch.

    The head's initial weights depend on the seed alone, so methods with one seed start from one point. A
    batch holds one language.
    """
    optimization, task = setting.optimization, setting.task
    tokenizer = load_tokenizer(setting.encoder)
    model = task.head(setting.encoder, seed=derive(setting.seed, "head"), attention=attention_for_training())
    groups = [
        task.encode(
            setting.train(language), tokenizer, limit=optimization.limit, overlap=optimization.overlap
        )
        for language in languages
    ]
    batches: Bucketed[EncodedRow, Batch] = Bucketed(
        groups=groups,
        length=lambda row: len(row.subwords),
        size=optimization.batch_size,
        epochs=optimization.epochs,
        seed=derive(setting.seed, "order"),
        make=lambda rows: collate(rows, padding=tokenizer.pad_token_id),
    )
    selection = _Selection(setting, tokenizer, languages, batches.steps_per_epoch)
    fitted = fit(
        model,
        batches,
        lambda model, batch: _loss(setting, model, batch),
        schedule=Schedule(
            learning_rate=optimization.learning_rate,
            warmup=optimization.warmup,
            weight_decay=optimization.weight_decay,
            beta2=optimization.beta2,
            clip=optimization.clip,
            precision=optimization.precision,
        ),
        seed=setting.seed,
        watch=Watch(
            evaluate=lambda done: selection.notes(model, done),
            evaluate_at=tuple(batches.steps_per_epoch * (epoch + 1) for epoch in range(optimization.epochs)),
            checkpoints=Checkpoints(setting.folder, optimization.checkpoint_every),
            tell=setting.tell,
            what=f"fine-tuning on {'+'.join(languages)}",
        ),
    )
    rows = _mark_chosen(fitted.rows)
    return Trained(model, tokenizer, rows, selection.warnings(rows))


def attention_for_training() -> str:
    """Name the attention that trains fastest: fused on a GPU; on a CPU its backward pass is the slow part."""
    return "sdpa" if torch.cuda.is_available() else offer_explicit_attention()


def _loss(setting: Setting, model: Any, batch: Batch) -> Tensor:
    return setting.task.loss(model, batch.to(next(model.parameters()).device))


class _Selection:
    """Dev data of the training languages, scored after each epoch."""

    def __init__(
        self, setting: Setting, tokenizer: Any, languages: tuple[str, ...], steps_per_epoch: int
    ) -> None:
        self.steps_per_epoch = steps_per_epoch
        self.evaluations = {
            language: evaluation(
                setting.task,
                setting.dev(language),
                tokenizer,
                setting.optimization,
                baseline=setting.task.majority(setting.train(language), setting.dev(language)),
            )
            for language in languages
        }

    def notes(self, model: Any, done: int) -> list[Note]:
        """Score the model in every language."""
        epoch = done // self.steps_per_epoch
        return [
            {
                "epoch": epoch,
                "step": done,
                "language": language,
                "split": "dev",
                "metric": one.metric,
                "score": one.score(model),
            }
            for language, one in self.evaluations.items()
        ]

    def warnings(self, rows: list[dict[str, Value]]) -> tuple[str, ...]:
        """Say in which training languages nothing was learned."""
        found = []
        for language, one in self.evaluations.items():
            best = max(
                (float(row["score"] or 0) for row in rows if row.get("language") == language), default=0.0
            )
            if best <= (one.baseline or 0.0) + ABOVE_CHANCE:
                found.append(
                    f"stuck at chance: the best {one.metric} on {language} dev is {best:.3f}, and always "
                    f"saying the commonest label gives {one.baseline:.3f}. "
                    f"Try a lower learning_rate or more epochs."
                )
        return tuple(found)


def _mark_chosen(rows: list[Note]) -> list[dict[str, Value]]:
    """Mark the rows of the epoch whose mean dev score was the first to be the highest."""
    epochs: dict[int, list[float]] = {}
    for row in rows:
        if "epoch" in row:
            epochs.setdefault(int(row["epoch"] or 0), []).append(float(row["score"] or 0.0))
    best = max(epochs, key=lambda epoch: (sum(epochs[epoch]) / len(epochs[epoch]), -epoch), default=0)
    return [{**row, "chosen": row["epoch"] == best} if "epoch" in row else dict(row) for row in rows]
