"""Training on examples and their translations: batches of pairs, and labels by a teacher.

Tags belong to words, and a translation has different words. So a model that was trained only on the source,
the teacher, labels the translations (X-Mixup, Section 4.2). Its probabilities are learned by cross entropy
together with the source's gold tags. Without a teacher, tags projected along word links are used
(``with_labels``).
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
from isogloss.tasks.row_table import RowTable, encode_in_blocks
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
"""From a step and the number of its pairs to whether each pair has the original source, not its
back-translation."""


@dataclass(frozen=True, slots=True)
class PairedRow:
    """A source row and its translation, with a back-translation ``back`` that may replace the source."""

    source: EncodedRow
    target: EncodedRow
    back: EncodedRow | None = None

    def choose_source(self, *, is_original: bool) -> RowPair:
        """Pair the translation with the original source if ``is_original``, else with any back-translation.

        Without a back-translation, the source is always the original. A back-translation was translated from
        this translation, so its links go in the opposite direction.
        """
        if is_original or self.back is None:
            return RowPair(self.source, self.target, self.target.links)
        return RowPair(self.back, self.target, reversed_links(self.back.links))

    def __len__(self) -> int:
        """Return the number of subwords of the longer side."""
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
    """Return batches of ``batch_size`` pairs, each of one language pair, with every pair once an epoch.

    Examples without a translation are skipped, with a warning. With ``takes_real``, back-translations
    sometimes replace the source. With ``pseudo_labels``, the setting's teacher labels all translations. With
    ``itself``, the examples of each source language are also paired with themselves. Raises DataError if too
    many labels differ for two sets to contain the same examples.
    """

    def encode_in(language: str, examples: Sequence[Example]) -> Sequence[EncodedRow]:
        return encode(setting, tokenizer, examples, language, pseudo=pseudo_labels)

    groups, warnings = _pairs_by_language(setting, train, encode_in, with_backs=takes_real is not None)
    for source in setting.source if itself else ():
        groups[f"{source}-{source}"] = [PairedRow(row, row) for row in encode_in(source, train[source])]

    def make(pairs: list[PairedRow], name: str, step: int) -> Sides:
        source, _, target = name.partition("-")
        originals = takes_real(step, len(pairs)) if takes_real else [True] * len(pairs)
        sample = [
            pair.choose_source(is_original=is_original)
            for pair, is_original in zip(pairs, originals, strict=True)
        ]
        sides = collate_pairs(sample, padding=tokenizer.pad_token_id, languages=(source, target))
        return replace(sides, back=not any(originals))

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
    encode_in: Callable[[str, Sequence[Example]], Sequence[EncodedRow]],
    *,
    with_backs: bool,
) -> tuple[dict[str, list[PairedRow]], list[str]]:
    """Encode the examples and translations of each language pair. Warns about missing translations."""
    groups = {}
    warnings = []
    for source, target in product(setting.source, setting.target):
        name = f"{source}-{target}"
        back = f"{name}-{source}"
        pairs = match_by_id(train[source], train[name], names=(source, name), partial=True)
        originals = [original for original, _ in pairs]
        backs: list[EncodedRow] = []
        if with_backs:
            back_pairs = match_by_id(originals, train[back], names=(source, back), partial=True)
            back_translations = [translation for _, translation in back_pairs]
            backs = translation_rows(originals, back_translations, partial(encode_in, back))
        groups[name] = paired_rows(
            encode_in(source, originals),
            encode_in(name, [translation for _, translation in pairs]),
            backs,
        )
        if skip_count := len(train[source]) - len(pairs):
            warnings.append(
                f"skipped {skip_count} of {len(train[source])} examples of {source}, which have no "
                f"translation with the same label in {name}."
            )
    return groups, warnings


def paired_rows(
    sources: Iterable[EncodedRow], targets: Iterable[EncodedRow], backs: Iterable[EncodedRow] = ()
) -> list[PairedRow]:
    """Pair the rows of examples with equal numbers, in order, using every window."""
    target_windows = group_by_example(targets)
    back_windows = group_by_example(backs)
    pairs: list[PairedRow] = []
    for example, windows in group_by_example(sources).items():
        if example not in target_windows:
            continue
        count = max(len(windows), len(target_windows[example]))
        back = back_windows.get(example)
        sides = zip(
            repeated_windows(windows, count),
            repeated_windows(target_windows[example], count),
            repeated_windows(back, count) if back else [None] * count,
            strict=True,
        )
        pairs += [PairedRow(*rows) for rows in sides]
    return pairs


def pseudo_labels(
    task: Task, teacher: str, examples: Sequence[Any], optimization: Optimization, *, language: str = ""
) -> list[Tensor]:
    """Return the teacher's probabilities [word class] for each example, in float16.

    ``teacher`` is a model's folder. ``language`` is the examples' language, for a teacher with language
    modules or maps.
    """
    model = load_teacher(task, teacher)
    data = evaluation(task, examples, load_tokenizer(teacher), optimization, language=language)
    labels = [torch.zeros(len(example.words), len(task.labels), dtype=torch.float16) for example in examples]
    for row, scores in zip(data.rows, data.scores(model), strict=True):
        labels[row.example][list(row.words)] = scores.softmax(dim=-1).half()
    return labels


def load_teacher(task: Task, teacher: str) -> Model:
    """Load a teacher from its folder for inference.

    Raises ModelError if its labels differ from the task's.
    """
    if not teacher:
        raise ConfigError(
            f"{task.name}: no teacher (a trained model) is given. Train a model with source-only, for "
            f"example, and give its folder (Setting.teacher)."
        )
    labels = tuple(load_encoder_config(teacher).id2label.values())
    if task.labels_are in ("example", "word") and labels != task.labels:
        raise ModelError(
            f"{teacher}: not a model of {task.name}: its labels are {', '.join(labels[:4])} …, not "
            f"{', '.join(task.labels[:4])} …. Use the model of a source-only run on the same task."
        )
    return task.head(teacher, seed=None).to(device()).eval()


def encode(
    setting: Setting,
    tokenizer: Tokenizer,
    examples: Sequence[Example],
    language: str,
    *,
    pseudo: bool = False,
) -> Sequence[EncodedRow]:
    """Encode examples as a table of rows.

    With ``pseudo``, the setting's teacher labels translations (``language`` as in en-sw).
    """
    optimization = setting.optimization
    if not examples:
        return []
    encode_block = partial(
        setting.task.encode, tokenizer=tokenizer, limit=optimization.limit, overlap=optimization.overlap
    )
    rows = encode_in_blocks(examples, encode_block)
    if not pseudo or not is_translation(language):
        return RowTable(rows)
    text = language_of_text(language)  # A teacher with modules uses the modules of the text's language.
    soft = pseudo_labels(setting.task, setting.teacher, examples, optimization, language=text)
    return RowTable(replace(row, soft=soft[row.example][list(row.words)]) for row in rows)


def with_labels(setting: Setting, data_read: Reads) -> Setting:
    """Remove the tags of translations from a setting if a teacher labels them."""
    return without_translated_tags(setting) if data_read.needs_teacher(setting.task) else setting


def without_translated_tags(setting: Setting) -> Setting:
    """Return a setting whose translations have no tags."""

    def train(language: str) -> list[Example]:
        examples: list[Any] = setting.train(language)
        return [replace(example, tags=()) for example in examples] if is_translation(language) else examples

    return replace(setting, train=train)
