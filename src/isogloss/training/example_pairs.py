"""Batches of examples beside their translations: n rows of the one, then n of the other, in one order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from isogloss.core.seeds import derive
from isogloss.data.examples import Example
from isogloss.data.parallel_examples import matched
from isogloss.tasks.batch import Batch, EncodedRow, collate
from isogloss.training.batching import Bucketed
from isogloss.training.setting import Setting


@dataclass(frozen=True, slots=True)
class RowPair:
    """An example and its translation as the encoder sees them."""

    source: EncodedRow
    translated: EncodedRow

    @property
    def longest(self) -> int:
        """Subwords of the longer one."""
        return max(len(self.source.subwords), len(self.translated.subwords))


def row_pairs(
    setting: Setting, tokenizer: Any, examples: Sequence[Example], translations: Sequence[Example], name: str
) -> list[RowPair]:
    """Encode examples and translations that have the same id; the task must have one row an example.

    ``name`` is that of the translations (en-sw). Examples without a translation are left out; DataError
    where too many labels differ for the two to be the same examples.
    """
    both = matched(examples, translations, names=(name.partition("-")[0], name), partial=True)
    how = setting.optimization
    sources, translated = (
        setting.task.encode(side, tokenizer, limit=how.limit, overlap=how.overlap)
        for side in ([one for one, _ in both], [other for _, other in both])
    )
    return [RowPair(one, other) for one, other in zip(sources, translated, strict=True)]


def paired_batches(
    setting: Setting, tokenizer: Any, groups: Sequence[Sequence[RowPair]]
) -> Bucketed[RowPair, Batch]:
    """Give batches of ``batch_size`` pairs, each from one group, every pair once an epoch."""

    def make(pairs: list[RowPair]) -> Batch:
        rows = [pair.source for pair in pairs] + [pair.translated for pair in pairs]
        return collate(rows, padding=tokenizer.pad_token_id)

    return Bucketed(
        groups=groups,
        length=lambda pair: pair.longest,
        size=setting.optimization.batch_size,
        epochs=setting.optimization.epochs,
        seed=derive(setting.seed, "order"),
        make=make,
    )
