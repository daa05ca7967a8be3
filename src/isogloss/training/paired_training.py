"""Training on pairs of an example and its translation: what is read, batched and selected.

As ``supervised`` is for examples alone; the epoch is chosen on the source's dev set, as everywhere else
where target labels are thought unknown.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

from torch import Tensor, nn

from isogloss.core.errors import ConfigError
from isogloss.core.seeds import derive
from isogloss.data.examples import Example
from isogloss.data.parallel_examples import matched
from isogloss.encoders import load_tokenizer
from isogloss.encoders.attention import fastest_attention
from isogloss.encoders.mixup import Mixup, save_mixup
from isogloss.encoders.speaking import check_languages, of_language
from isogloss.training.batching import Batches, Bucketed
from isogloss.training.checkpoints import Checkpoints
from isogloss.training.fit import Watch, fit
from isogloss.training.paired_rows import Labelled, PairedBatch, PairedRow, collate_sides, paired_rows
from isogloss.training.pseudo_labels import pseudo_labels
from isogloss.training.setting import Setting
from isogloss.training.supervised import (
    Selection,
    Trained,
    mark_chosen,
    schedule_of,
    settled,
)

RATIO = "ratio."
"""How the names of W and b begin in a model that mixes."""

SELDOM = 0.01
"""Share of back-translated batches below which a schedule might as well not be there."""


class MixedModel(nn.Module):
    """A model, and what mixes in one of its layers; both are trained."""

    def __init__(self, network: Any, mixup: Mixup) -> None:
        super().__init__()
        self.network, self.mixup = network, mixup
        self.ratio = mixup.ratio if mixup.learned and mixup.largest else None


@dataclass(frozen=True, kw_only=True)
class Course:
    """What a method decides about a training on pairs."""

    mixup: Callable[[Any], Mixup]
    """From the encoder's configuration to where and how much is mixed."""
    loss: Callable[[MixedModel, PairedBatch], Tensor]
    """From the model and a batch, on the model's device, to one number."""
    real: Callable[[int, int], list[bool]]
    """From a step and the number of its pairs: whether each has the real source, not its back-translation."""
    back: bool
    """Whether back-translations are read."""
    pseudo: bool
    """Whether translations have pseudo-labels, by the setting's teacher."""
    ratio_rate: float = 1.0
    """How many times the learning rate W and b of the mixing ratio learn at."""


def train_on_pairs(setting: Setting, course: Course) -> Trained:
    """Train on each source language's examples beside their translations into each target language.

    A batch holds one pair of languages; examples without a translation are left out, with a warning.
    """
    checkpoints = Checkpoints(setting.folder, setting.optimization.checkpoint_every)
    setting = settled(setting, checkpoints)
    tokenizer = load_tokenizer(setting.start)
    network = setting.task.head(
        setting.start, seed=derive(setting.seed, "head"), attention=fastest_attention()
    )
    check_languages(network, (*setting.source, *setting.target))
    model = MixedModel(network, course.mixup(network.config))
    train = {language: setting.train(language) for language in setting.source}
    reading = _Reading(setting, tokenizer, course)
    batches = _batches(setting, course, reading.groups(train), padding=tokenizer.pad_token_id)
    steps = batches.plan.steps_per_epoch
    selection = Selection(setting, tokenizer, train, setting.source, steps_per_epoch=steps)
    watch = Watch(
        evaluate=lambda done: selection.notes(network, done),
        evaluate_at=tuple(range(steps, len(batches) + 1, steps)),
        checkpoints=checkpoints,
        tell=setting.tell,
        what=f"fine-tuning on {'+'.join(setting.source)} beside {'+'.join(setting.target)}",
    )
    schedule = replace(schedule_of(setting.optimization), faster=(RATIO, course.ratio_rate))
    loss = partial(_placed, course.loss)
    rows = mark_chosen(fit(model, batches, loss, schedule=schedule, seed=setting.seed, watch=watch).rows)
    warnings = (*reading.warnings, *batches.warnings(), *selection.warnings(rows))
    return Trained(network, tokenizer, rows, warnings, extras=(partial(save_mixup, model.mixup),))


def _placed(
    loss: Callable[[MixedModel, PairedBatch], Tensor], model: MixedModel, batch: PairedBatch
) -> Tensor:
    with of_language(model.network, batch.languages):
        return loss(model, batch.to(next(model.parameters()).device))


class _Reading:
    """From examples and their translations to rows; notes what is left out."""

    def __init__(self, setting: Setting, tokenizer: Any, course: Course) -> None:
        self.setting, self.tokenizer, self.course = setting, tokenizer, course
        self.warnings: list[str] = []

    def groups(self, train: dict[str, list[Example]]) -> list[list[PairedRow]]:
        """Give the pairs of each source language with each target language."""
        return [self.rows(train[one], one, other) for one, other in product(train, self.setting.target)]

    def rows(self, examples: list[Example], source: str, target: str) -> list[PairedRow]:
        """Pair a source language's examples with their translations into a target language."""
        there = f"{source}-{target}"
        pairs = matched(examples, self.setting.train(there), names=(source, there), partial=True)
        if len(pairs) < len(examples):
            self.warnings.append(
                f"{len(examples) - len(pairs)} of {len(examples)} examples of {source} have no translation "
                f"with the same label in {there} and were left out."
            )
        originals, translations = ([pair[side] for pair in pairs] for side in (0, 1))
        return paired_rows(
            map(Labelled, self._encoded(originals)),
            self._labelled(translations, target),
            self._labelled(*self._back(originals, source, target)),
        )

    def _back(
        self, originals: list[Example], source: str, target: str
    ) -> tuple[list[Example], str, list[int]]:
        """Give the back-translations that are there, their language, and each one's original's number."""
        if not self.course.back:
            return [], source, []
        name = f"{source}-{target}-{source}"
        numbers = {example.id: number for number, example in enumerate(originals)}
        pairs = matched(originals, self.setting.train(name), names=(source, name), partial=True)
        return [back for _, back in pairs], source, [numbers[original.id] for original, _ in pairs]

    def _labelled(
        self, examples: list[Any], language: str, numbers: list[int] | None = None
    ) -> list[Labelled]:
        """Encode translated examples; ``numbers`` are theirs, where they are not all that were asked for."""
        if self.course.pseudo:
            examples = [
                replace(example, tags=()) for example in examples
            ]  # A translation's tags are not known.
        rows = self._encoded(examples)
        soft = self._soft(examples, language)
        found = [Labelled(row, soft[row.example][list(row.words)] if soft else None) for row in rows]
        if numbers is None:
            return found
        return [replace(one, row=replace(one.row, example=numbers[one.example])) for one in found]

    def _soft(self, examples: list[Any], language: str) -> list[Tensor]:
        if not self.course.pseudo or not examples:
            return []
        how = self.setting
        if not how.teacher:
            raise ConfigError(
                f"x-mixup: {how.task.name} needs a model trained on the source alone, which labels the "
                f"translations; found none. Make a source-only run and name its folder (Setting.teacher)."
            )
        return pseudo_labels(how.task, how.teacher, examples, how.optimization, language=language)

    def _encoded(self, examples: Sequence[Any]) -> list[Any]:
        how = self.setting.optimization
        return self.setting.task.encode(examples, self.tokenizer, limit=how.limit, overlap=how.overlap)


def _batches(
    setting: Setting, course: Course, groups: list[list[PairedRow]], *, padding: int
) -> "_PairedBatches":
    how = setting.optimization
    plan = Bucketed(
        groups=groups,
        length=len,
        size=how.batch_size,
        epochs=how.epochs,
        seed=derive(setting.seed, "order"),
        make=list,
    )
    make = partial(collate_sides, padding=padding, labels=len(setting.task.labels))
    pairs = tuple(product(setting.source, setting.target))
    return _PairedBatches(plan, course.real, make, pairs, back=course.back)


@dataclass(frozen=True)
class _PairedBatches(Batches[PairedBatch]):
    """Batches of pairs; each step decides which source its pairs have."""

    plan: Bucketed[PairedRow, list[PairedRow]]
    real: Callable[[int, int], list[bool]]
    make: Callable[[Sequence[Labelled], Sequence[Labelled]], PairedBatch]
    languages: tuple[tuple[str, str], ...]
    """Of each group of rows that of its sources and that of its targets."""
    back: bool
    """Whether there are back-translations to take."""

    def __len__(self) -> int:
        return len(self.plan)

    def warnings(self) -> tuple[str, ...]:
        """Say when the training was too short for the schedule of its sources."""
        if not self.back:
            return ()
        taken = sum(not all(self.real(step, 1)) for step in range(len(self)))
        if taken >= SELDOM * len(self):
            return ()
        return (
            f"scheduled sampling took back-translations in {taken} of {len(self)} batches: the training is "
            f"too short for its decay k. Lower decay (from batch k·ln k on half are taken), or set "
            f"schedule = false.",
        )

    def __getitem__(self, step: int) -> PairedBatch:
        pairs = self.plan[step]
        real = self.real(step, len(pairs))
        sources = [
            pair.source if is_real or pair.back is None else pair.back
            for pair, is_real in zip(pairs, real, strict=True)
        ]
        source, target = self.languages[self.plan.group_of(step)]
        made = self.make(sources, [pair.target for pair in pairs])
        return replace(made, languages=(source,) * len(pairs) + (target,) * len(pairs))
