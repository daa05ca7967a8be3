"""Examples with their translations: their labels, the rows of both sides, and batches of such pairs.

Both sides of a batch run through an encoder in one pass, the source's rows first. Tags belong to words, and a
translation has others: a model that was trained on the source alone labels the translations (X-Mixup, Section
4.2), and its probabilities are learned by cross entropy together with the source's gold tags. Tags of
translations are not read.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from isogloss.core.errors import ConfigError, ModelError
from isogloss.core.languages import language_of_text
from isogloss.core.run_parts import Optimization
from isogloss.core.seeds import derive
from isogloss.data.corpus import is_translation
from isogloss.data.examples import Example
from isogloss.data.projection.parallel_examples import matched
from isogloss.encoders import load_encoder_config, load_tokenizer
from isogloss.encoders.annotations import Tokenizer
from isogloss.tasks import Task
from isogloss.tasks.batch import Batch, EncodedRow, by_example, collate, row_ranges
from isogloss.tasks.tagging import Tagging
from isogloss.tasks.task import Model
from isogloss.training.batching import Bucketed
from isogloss.training.evaluation import evaluation
from isogloss.training.linked_rows import LinkedRows, subword_links, turned
from isogloss.training.precision import device
from isogloss.training.setting import Setting

TakesReal = Callable[[int, int], list[bool]]
"""From a step and the number of its pairs: whether each has the real source, not its back-translation."""


@dataclass(frozen=True, slots=True)
class PairedRow:
    """A source row and its translation; ``back`` is what may take the source's place."""

    source: EncodedRow
    target: EncodedRow
    back: EncodedRow | None = None

    def sides(self, *, real: bool) -> LinkedRows:
        """Return the real source, or its back-translation where there is one, and the translation.

        What is translated back was made from this very translation, and so are its links.
        """
        if real or self.back is None:
            return LinkedRows(self.source, self.target, self.target.links)
        return LinkedRows(self.back, self.target, turned(self.back.links))

    def __len__(self) -> int:
        """Return the subwords of the longer side."""
        return max(len(self.source.subwords), len(self.target.subwords))


class Shares(NamedTuple):
    """The shares of a part of a batch in the means over all labels of each side, all pairs, and all rows."""

    source: float = 1.0
    target: float = 1.0
    pairs: float = 1.0
    rows: float = 1.0


WHOLE = Shares()


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedBatch:
    """Rows of both sides, the source's first, and the labels of each side.

    The places of ``both`` are those of the source, then those of the target.
    """

    both: Batch
    source: Batch
    target: Batch
    links: Bool[Tensor, "pair target source"] | None = None
    """Whether subwords belong to linked words; None where it is not known of all pairs."""
    shares: Shares = WHOLE

    def to(self, device: torch.device | str) -> "PairedBatch":
        """Return the batch on a device."""
        return replace(
            self,
            both=self.both.to(device),
            source=self.source.to(device),
            target=self.target.to(device),
            links=None if self.links is None else self.links.to(device),
        )

    def parts(self, count: int) -> list[tuple["PairedBatch", float]]:
        """Split into at most ``count`` batches of nearly equal pairs; each knows its shares of the loss."""
        pairs = self.source.items
        parts = []
        for rows in row_ranges(pairs, count):
            source, target = self.source.chosen(rows), self.target.chosen(rows)
            both = self.both.chosen([*rows, *(pairs + row for row in rows)])
            shares = Shares(
                source.terms / self.source.terms,
                target.terms / self.target.terms,
                len(rows) / pairs,
                len(source.subwords) / len(self.source.subwords),
            )
            links = None if self.links is None else self.links[rows.start : rows.stop]
            part = PairedBatch(both=both, source=source, target=target, links=links, shares=shares)
            parts.append((part, 1.0))
        return parts

    def split(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Split scores [label class] of ``both`` into those of source and target."""
        return scores[: self.source.scored], scores[self.source.scored :]


def paired_batches(
    setting: Setting,
    tokenizer: Tokenizer,
    train: Mapping[str, Sequence[Example]],
    *,
    takes_real: TakesReal | None = None,
    pseudo_labels: bool = False,
) -> tuple[Bucketed[PairedRow, PairedBatch], tuple[str, ...]]:
    """Return batches of ``batch_size`` pairs, each of one pair of languages, every pair once an epoch.

    Examples without a translation are left out, with a warning; DataError where too many labels differ for
    the two to be the same examples. With ``takes_real`` back-translations take the source's place now and
    then; with ``pseudo_labels`` the setting's teacher labels whatever was translated.
    """
    encoded = partial(encode, setting, tokenizer, pseudo=pseudo_labels)
    groups, warnings = {}, []
    for source, target in product(setting.source, setting.target):
        name, back = f"{source}-{target}", f"{source}-{target}-{source}"
        both = matched(train[source], train[name], names=(source, name), partial=True)
        originals = [original for original, _ in both]
        groups[name] = paired_rows(
            encoded(originals, source),
            encoded([translation for _, translation in both], name),
            _back_rows(encoded, originals, train[back], back) if takes_real else (),
        )
        if left_out := len(train[source]) - len(both):
            warnings.append(
                f"{left_out} of {len(train[source])} examples of {source} have no translation with the same "
                f"label in {name} and were left out."
            )

    def make(pairs: list[PairedRow], name: str, step: int) -> PairedBatch:
        source, _, target = name.partition("-")
        languages = (source,) * len(pairs) + (target,) * len(pairs)
        real = takes_real(step, len(pairs)) if takes_real else [True] * len(pairs)
        sides = [pair.sides(real=is_real) for pair, is_real in zip(pairs, real, strict=True)]
        sources, targets = [one.source for one in sides], [one.target for one in sides]
        batch = collate_sides(sources, targets, padding=tokenizer.pad_token_id, languages=languages)
        return replace(batch, links=subword_links(sides, width=batch.both.subwords.size(1)))

    batches = Bucketed(
        groups=groups,
        length=len,
        size=setting.optimization.batch_size,
        epochs=setting.optimization.epochs,
        seed=derive(setting.seed, "order"),
        make=make,
    )
    return batches, tuple(warnings)


def _back_rows(
    encoded: Callable[[Sequence[Example], str], list[EncodedRow]],
    originals: Sequence[Example],
    translations: Sequence[Example],
    name: str,
) -> list[EncodedRow]:
    """Encode the back-translations that are there, under the numbers of their originals."""
    numbers = {example.id: number for number, example in enumerate(originals)}
    both = matched(originals, translations, names=(name.partition("-")[0], name), partial=True)
    rows = encoded([back for _, back in both], name)
    return [replace(row, example=numbers[both[row.example][0].id]) for row in rows]


def paired_rows(
    sources: Iterable[EncodedRow], targets: Iterable[EncodedRow], backs: Iterable[EncodedRow] = ()
) -> list[PairedRow]:
    """Pair the rows of examples that have equal numbers, in their order.

    A long text has several windows, and its translation may have more or fewer: the side with fewer gives
    some of them twice, so that neighbours meet and none is left out.
    """
    there, others, again = by_example(sources), by_example(targets), by_example(backs)
    found: list[PairedRow] = []
    for example, rows in there.items():
        translated, back = others.get(example, []), again.get(example, [])
        if not translated:
            continue
        count = max(len(rows), len(translated))
        backs_of = repeated(back, count) if back else [None] * count
        found += map(PairedRow, repeated(rows, count), repeated(translated, count), backs_of)
    return found


def repeated(rows: Sequence[EncodedRow], count: int) -> list[EncodedRow]:
    """Return ``count`` of these rows in order, each as often as the others or once more."""
    return [rows[place * len(rows) // count] for place in range(count)]


def collate_sides(
    sources: Sequence[EncodedRow],
    targets: Sequence[EncodedRow],
    *,
    padding: int,
    languages: tuple[str, ...] = (),
) -> PairedBatch:
    """Collate equally many rows of each side; ``languages`` are those of the rows of both."""
    unlabelled = [replace(row, gold=(), heads=(), soft=None) for row in (*sources, *targets)]
    return PairedBatch(
        both=collate(unlabelled, padding=padding, languages=languages),
        source=collate(sources, padding=padding),
        target=collate(targets, padding=padding),
    )


def uses_teacher(task: object) -> bool:
    """Return whether a teacher can label a task's translations: one label a word."""
    return isinstance(task, Tagging)


def pseudo_labels(
    task: Task,
    teacher: str,
    examples: Sequence[Any],
    optimization: Optimization,
    *,
    language: str = "",
) -> list[Tensor]:
    """Return [word class] probabilities for each example, in float16; ``teacher`` is a model's folder.

    ``language`` is the examples', which a teacher with language modules or maps must know.
    """
    model = load_teacher(task, teacher)
    prepared = evaluation(task, examples, load_tokenizer(teacher), optimization, language=language)
    found = [torch.zeros(len(example.words), len(task.labels), dtype=torch.float16) for example in examples]
    for row, scores in zip(prepared.rows, prepared.scores(model), strict=True):
        found[row.example][list(row.words)] = scores.softmax(dim=-1).half()
    return found


def load_teacher(task: Task, teacher: str) -> Model:
    """Load the model of a task in a folder, to be read; ModelError where it has other labels."""
    if not teacher:
        raise ConfigError(
            f"{task.name}: a teacher is needed, a model that was trained before; found none. Make a run of "
            f"source-only, say, and name its folder (Setting.teacher)."
        )
    known = tuple(load_encoder_config(teacher).id2label.values())
    if task.labels_are in ("example", "word") and known != task.labels:
        raise ModelError(
            f"{teacher}: no model of {task.name}: found the labels {', '.join(known[:4])} …; expected "
            f"{', '.join(task.labels[:4])} …. Give the model of a source-only run on the same task."
        )
    return task.head(teacher, seed=0).to(device()).eval()


def encode(
    setting: Setting,
    tokenizer: Tokenizer,
    examples: Sequence[Example],
    language: str,
    *,
    pseudo: bool = False,
) -> list[EncodedRow]:
    """Encode examples; with ``pseudo`` the setting's teacher labels translations (``language`` as en-sw)."""
    how, labelled = setting.optimization, pseudo and is_translation(language)
    if not examples:
        return []
    rows = setting.task.encode(examples, tokenizer, limit=how.limit, overlap=how.overlap)
    if not labelled:
        return rows
    text = language_of_text(language)  # A teacher with modules reads by those of the text's language.
    soft = pseudo_labels(setting.task, setting.teacher, examples, how, language=text)
    return [replace(row, soft=soft[row.example][list(row.words)]) for row in rows]


def untagged(setting: Setting) -> Setting:
    """Return a setting whose translations come without tags."""
    return replace(setting, train=partial(_untagged, setting))


def _untagged(setting: Setting, language: str) -> list[Example]:
    found: list[Any] = setting.train(language)
    return [replace(one, tags=()) for one in found] if is_translation(language) else found
