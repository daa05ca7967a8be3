"""The mean of several models' probabilities, in the rows of the first one.

With p_m the probabilities of model m for a unit (a text, a word, the options of a choice), the ensemble's are
mean_m p_m; of a text with several labels, each label has its own mean. Models may split texts into
other subwords and windows, and have their labels in a different order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from math import log

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import log_softmax, logsigmoid

from isogloss.core.progress import OnProgress, Progress
from isogloss.encoders.family import Model as Network
from isogloss.tasks.batch import EncodedRow
from isogloss.tasks.task import LABELS, Task
from isogloss.training.evaluation import Evaluation

Order = tuple[int, ...]
"""For each label of the ensemble, its index among a model's labels."""


@dataclass(frozen=True, kw_only=True)
class EnsembleEvaluation(Evaluation):
    """Examples of one language, encoded for each model of an ensemble.

    All other fields are as in the first model.
    """

    members: tuple[Evaluation, ...]
    orders: tuple[Order, ...]

    def scores(self, model: nn.Module) -> list[Tensor]:
        """Return the raw scores of the mean prediction for each row of the first model.

        ``model`` is a ModuleList of the members' networks.
        """
        networks: list[Network] = list(model)  # type: ignore[call-overload]
        tables = []
        for index, (member, network) in enumerate(zip(self.members, networks, strict=True)):
            on_progress = _part_of(self.on_progress, index, len(self.members))
            scores = replace(member, on_progress=on_progress).scores(network)
            tables.append(_arrange_by_unit(self.rows, member.rows, scores, self.orders[index]))
        mean = mean_of_labels if self.task.one_answer is LABELS else mean_of_classes
        if not tables or not self.rows:
            return []
        if any(row.options for row in self.rows):
            return [mean(torch.stack(parts)) for parts in zip(*tables, strict=True)]
        sizes = [len(_units(row)) for row in self.rows]
        return list(torch.split(mean(torch.stack([torch.cat(parts) for parts in tables])), sizes))


def combine_evaluations(task: Task, members: Sequence[Evaluation], orders: Sequence[Order]) -> Evaluation:
    """Return the evaluation of several models on the same examples, each prepared for its model."""
    first_member = members[0]
    values = {field.name: getattr(first_member, field.name) for field in fields(Evaluation)}
    values["task"] = task
    values["warnings"] = tuple(dict.fromkeys(text for member in members for text in member.warnings))
    return EnsembleEvaluation(**values, members=tuple(members), orders=tuple(orders))


def mean_of_classes(scores: Float[Tensor, "model unit class"]) -> Float[Tensor, "unit class"]:
    """Return raw scores whose softmax is the mean of the models' softmax.

    They are on the scale of the first model's, so that equal models give what one of them gives.
    """
    exact = scores.double()
    mean = log_softmax(exact, dim=-1).logsumexp(dim=0) - log(len(scores))
    return (mean + exact[0].logsumexp(dim=-1, keepdim=True)).float()


def mean_of_labels(scores: Float[Tensor, "model unit label"]) -> Float[Tensor, "unit label"]:
    """Return raw scores whose sigmoid is the mean of the models' sigmoid."""
    yes, no = (logsigmoid(sign * scores.double()).logsumexp(dim=0) for sign in (1, -1))
    return (yes - no).float()


def match_labels(labels: Sequence[str], theirs: Sequence[str]) -> Order:
    """Return for each label its index among another model's, which are the same in any order."""
    return tuple(theirs.index(label) for label in labels)


def _units(row: EncodedRow) -> list[tuple[int, int]]:
    """Return the scored items of a row: words of an example, or the whole example."""
    return [(row.example, word) for word in (row.words or (0,))]


def _arrange_by_unit(
    first_rows: Sequence[EncodedRow], rows: Sequence[EncodedRow], scores: Sequence[Tensor], order: Order
) -> list[Tensor]:
    """Return a model's scores [unit class] of each first_rows row, from its own rows."""
    if any(row.options for row in rows):
        example_scores = {
            row.example: row_scores.flatten()[: len(row.options)].unsqueeze(0)
            for row, row_scores in zip(rows, scores, strict=True)
        }
        return [example_scores[row.example] for row in first_rows]
    indices = {unit: index for index, unit in enumerate(_all_units(rows))}
    flat = torch.cat(list(scores))[:, list(order)] if scores else torch.empty(0, len(order))
    return [flat[[indices[unit] for unit in _units(row)]] for row in first_rows]


def _all_units(rows: Sequence[EncodedRow]) -> Iterator[tuple[int, int]]:
    for row in rows:
        yield from _units(row)


def _part_of(on_progress: OnProgress, index: int, count: int) -> OnProgress:
    """Return a function that reports the progress of one of several models as the progress of all."""

    def report(progress: Progress) -> None:
        total = progress.total * count
        on_progress(replace(progress, done=index * progress.total + progress.done, total=total))

    return report
