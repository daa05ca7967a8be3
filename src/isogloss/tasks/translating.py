"""Training to translate: padded batches of text pairs, and their loss.

Vaswani et al. (2017), Section 5: cross entropy of each subword of the translation, with label smoothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear

from isogloss.encoders.family import Model
from isogloss.encoders.subwords import pad_rows, padding_mask
from isogloss.tasks.batch import row_ranges, to_device


class TranslationRow(NamedTuple):
    """The subword ids of a text, after its language code, and of its translation; both end in </s>."""

    text: np.ndarray
    translation: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationBatch:
    """Texts and translations, each padded to the longest."""

    text: Tensor
    """[batch subword], integer."""
    mask: Tensor
    """[batch subword], 1 at real subwords of the text."""
    before: Tensor
    """[batch subword], integer: the decoder's input, which is the translation shifted right by one."""
    gold: Tensor
    """[batch subword], integer: the translation."""

    def to(self, device: torch.device) -> "TranslationBatch":
        """Return the batch on a device."""
        return to_device(self, device)

    def parts(self, count: int) -> list[tuple["TranslationBatch", float]]:
        """Split into at most ``count`` batches of nearly equal rows, each with its share of the loss."""
        padding = self.before[0, 0]  # Also the decoder's start subword.
        real = (self.gold != padding).sum(dim=1)
        return [
            (
                TranslationBatch(
                    **{
                        field.name: getattr(self, field.name)[rows.start : rows.stop]
                        for field in fields(self)
                    }
                ),
                float(real[rows.start : rows.stop].sum() / real.sum()),
            )
            for rows in row_ranges(len(self.gold), count)
        ]


def collate_translations(rows: Sequence[TranslationRow], *, padding: int) -> TranslationBatch:
    """Pad texts and translations; ``padding`` is also the decoder's start subword."""
    gold = pad_rows([row.translation.tolist() for row in rows], padding)
    return TranslationBatch(
        text=pad_rows([row.text.tolist() for row in rows], padding),
        mask=padding_mask([len(row.text) for row in rows]),
        before=torch.cat([torch.full_like(gold[:, :1], padding), gold[:, :-1]], dim=1),
        gold=gold,
    )


def translation_loss(model: Model, batch: TranslationBatch, *, smoothing: float = 0.0) -> Tensor:
    """Return the mean loss over the real subwords of the translations.

    Padding, the last id of the vocabulary, is never predicted and gets no gradient: its embedding stays zero.
    """
    padding = model.config.pad_token_id
    states = model.model(
        input_ids=batch.text, attention_mask=batch.mask, decoder_input_ids=batch.before
    ).last_hidden_state
    real = batch.gold != padding
    # Cutting the vocabulary in the weights avoids a copy of the scores, by far the largest tensor.
    scores = linear(states[real], model.lm_head.weight[:padding], model.final_logits_bias[0, :padding])
    return cross_entropy(scores.float(), batch.gold[real], label_smoothing=smoothing)
