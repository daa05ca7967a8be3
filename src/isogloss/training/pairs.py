"""Training on examples and their translations: batches of pairs, and labels by a teacher.

Tags belong to words, and a translation has other words: a model that was trained on the source alone, the
teacher, labels the translations (X-Mixup, Section 4.2), and its probabilities are learned by cross entropy
together with the source's gold tags. Or tags are projected along word links, which is what is read without a
teacher (``with_labels``).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor

from isogloss.core.errors import ConfigError, ModelError
from isogloss.core.identity import derive
from isogloss.core.languages import language_of_text
from isogloss.core.run_parts import Optimization
from isogloss.data.corpus import is_translation
from isogloss.data.examples import Example
from isogloss.data.projection.parallel_examples import match_by_id
from isogloss.encoders.family import Model, Tokenizer
from isogloss.encoders.folders import load_encoder_config
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.tasks.batch import EncodedRow, group_by_example
from isogloss.tasks.task import Task
from isogloss.training.batching import Bucketed
from isogloss.training.evaluation import evaluation
from isogloss.training.precision import device
from isogloss.training.setting import Reads, Setting
from isogloss.training.sides import (
    RowPair,
    Sides,
    collate_pairs,
    repeated_windows,
    reversed_links,
    translation_rows,
)

TakesReal = Callable[[int, int], list[bool]]
"""From a step and the number of its pairs: whether each has the real source, not its back-translation."""


@dataclass(frozen=True, slots=True)
class PairedRow:
    """A source row and its translation; ``back`` is the back-translation that may replace the source."""

    source: EncodedRow
    target: EncodedRow
    back: EncodedRow | None = None

    def sampled(self, *, real: bool) -> RowPair:
        """Return the real source, or its back-translation, if any, and the translation.

        A back-translation was made from this very translation, and so were its links.
        """
        if real or self.back is None:
            return RowPair(self.source, self.target, self.target.links)
        return RowPair(self.back, self.target, reversed_links(self.back.links))

    def __len__(self) -> int:
        """Return the subwords of the longer side."""
        return max(len(self.source.subwords), len(self.target.subwords))


def paired_batches(
    setting: Setting,
    tokenizer: Tokenizer,
    train: Mapping[str, Sequence[Example]],
    *,
    takes_real: TakesReal | None = None,
    pseudo_labels: bool = False,
    itself: bool = False,
) -> tuple[Bucketed[PairedRow, Sides], tuple[str, ...]]:
    """Return batches of ``batch_size`` pairs, each of one pair of languages, every pair once an epoch.

    Examples without a translation are left out, with a warning; DataError where too many labels differ for
    the two to be the same examples. With ``takes_real`` back-translations sometimes replace the source; with
    ``pseudo_labels`` the setting's teacher labels all translations; with ``itself`` the examples of each
    source language are paired with themselves, too.
    """

    def encode_in(language: str, examples: Sequence[Example]) -> list[EncodedRow]:
        return encode(setting, tokenizer, examples, language, pseudo=pseudo_labels)

    groups, warnings = _pairs_by_language(setting, train, encode_in, with_backs=takes_real is not None)
    for source in setting.source if itself else ():
        groups[f"{source}-{source}"] = [PairedRow(row, row) for row in encode_in(source, train[source])]

    def make(pairs: list[PairedRow], name: str, step: int) -> Sides:
        source, _, target = name.partition("-")
        real = takes_real(step, len(pairs)) if takes_real else [True] * len(pairs)
        sampled = [pair.sampled(real=is_real) for pair, is_real in zip(pairs, real, strict=True)]
        sides = collate_pairs(sampled, padding=tokenizer.pad_token_id, languages=(source, target))
        return replace(sides, back=not any(real))

    batches = Bucketed(
        groups=groups,
        length=len,
        size=setting.optimization.batch_size,
        epochs=setting.optimization.epochs,
        seed=derive(setting.seed, "order"),
        make=make,
    )
    return batches, tuple(warnings)


def _pairs_by_language(
    setting: Setting,
    train: Mapping[str, Sequence[Example]],
    encode_in: Callable[[str, Sequence[Example]], list[EncodedRow]],
    *,
    with_backs: bool,
) -> tuple[dict[str, list[PairedRow]], list[str]]:
    """Encode each pair of languages' examples and translations; a warning where some have no translation."""
    groups, warnings = {}, []
    for source, target in product(setting.source, setting.target):
        name, back = f"{source}-{target}", f"{source}-{target}-{source}"
        pairs = match_by_id(train[source], train[name], names=(source, name), partial=True)
        originals = [original for original, _ in pairs]
        backs: list[EncodedRow] = []
        if with_backs:
            again = match_by_id(originals, train[back], names=(source, back), partial=True)
            backs = translation_rows(originals, [other for _, other in again], partial(encode_in, back))
        groups[name] = paired_rows(
            encode_in(source, originals),
            encode_in(name, [translation for _, translation in pairs]),
            backs,
        )
        if left_out := len(train[source]) - len(pairs):
            warnings.append(
                f"{left_out} of {len(train[source])} examples of {source} have no translation with the same "
                f"label in {name} and were left out."
            )
    return groups, warnings


def paired_rows(
    sources: Iterable[EncodedRow], targets: Iterable[EncodedRow], backs: Iterable[EncodedRow] = ()
) -> list[PairedRow]:
    """Pair the rows of examples that have equal numbers, in their order, no window left out."""
    translated, translated_back = group_by_example(targets), group_by_example(backs)
    pairs: list[PairedRow] = []
    for example, windows in group_by_example(sources).items():
        if example not in translated:
            continue
        count = max(len(windows), len(translated[example]))
        back = translated_back.get(example)
        pairs += map(
            PairedRow,
            repeated_windows(windows, count),
            repeated_windows(translated[example], count),
            repeated_windows(back, count) if back else [None] * count,
        )
    return pairs


def pseudo_labels(
    task: Task, teacher: str, examples: Sequence[Any], optimization: Optimization, *, language: str = ""
) -> list[Tensor]:
    """Return [word class] probabilities for each example, in float16; ``teacher`` is a model's folder.

    ``language`` is the examples', for a teacher with language modules or maps.
    """
    model = load_teacher(task, teacher)
    prepared = evaluation(task, examples, load_tokenizer(teacher), optimization, language=language)
    labels = [torch.zeros(len(example.words), len(task.labels), dtype=torch.float16) for example in examples]
    for row, scores in zip(prepared.rows, prepared.scores(model), strict=True):
        labels[row.example][list(row.words)] = scores.softmax(dim=-1).half()
    return labels


def load_teacher(task: Task, teacher: str) -> Model:
    """Load a teacher from its folder for inference; ModelError where it has other labels than the task."""
    if not teacher:
        raise ConfigError(
            f"{task.name}: a teacher is needed, a model that was trained before; found none. Make a run of "
            f"source-only, say, and name its folder (Setting.teacher)."
        )
    labels = tuple(load_encoder_config(teacher).id2label.values())
    if task.labels_are in ("example", "word") and labels != task.labels:
        raise ModelError(
            f"{teacher}: no model of {task.name}: found the labels {', '.join(labels[:4])} …; expected "
            f"{', '.join(task.labels[:4])} …. Give the model of a source-only run on the same task."
        )
    return task.head(teacher, seed=None).to(device()).eval()


def encode(
    setting: Setting,
    tokenizer: Tokenizer,
    examples: Sequence[Example],
    language: str,
    *,
    pseudo: bool = False,
) -> list[EncodedRow]:
    """Encode examples; with ``pseudo`` the setting's teacher labels translations (``language`` as en-sw)."""
    optimization = setting.optimization
    if not examples:
        return []
    rows = setting.task.encode(examples, tokenizer, limit=optimization.limit, overlap=optimization.overlap)
    if not pseudo or not is_translation(language):
        return rows
    text = language_of_text(language)  # A teacher with modules reads by those of the text's language.
    soft = pseudo_labels(setting.task, setting.teacher, examples, optimization, language=text)
    return [replace(row, soft=soft[row.example][list(row.words)]) for row in rows]


def with_labels(setting: Setting, reads: Reads) -> Setting:
    """Return a setting whose translations have the labels that are learned: none where a teacher's are."""
    return without_translated_tags(setting) if reads.needs_teacher(setting.task) else setting


def without_translated_tags(setting: Setting) -> Setting:
    """Return a setting whose translations have no tags."""

    def train(language: str) -> list[Example]:
        examples: list[Any] = setting.train(language)
        return [replace(example, tags=()) for example in examples] if is_translation(language) else examples

    return replace(setting, train=train)
