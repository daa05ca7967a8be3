"""Training to translate: pairs of texts as padded batches, and their loss.

Vaswani et al. (2017), Section 5: cross-entropy of each subword of the translation, labels smoothed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear


class TranslationRow(NamedTuple):
    """A text and its translation in subwords: the text with its language before it, both with their end."""

    text: Any
    translation: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationBatch:
    """Texts and translations, each padded to the longest."""

    text: Tensor
    """[batch subword], integer."""
    mask: Tensor
    """[batch subword], 1 at real subwords of the text."""
    before: Tensor
    """[batch subword], integer: what is known when a subword of the translation is to be written."""
    gold: Tensor
    """[batch subword], integer: the translation, padded."""

    def to(self, device: torch.device) -> "TranslationBatch":
        """Return the batch on a device."""
        return TranslationBatch(
            text=self.text.to(device),
            mask=self.mask.to(device),
            before=self.before.to(device),
            gold=self.gold.to(device),
        )


def collate_translations(rows: Sequence[TranslationRow], *, padding: int) -> TranslationBatch:
    """Pad texts and translations; ``padding`` is also what every translation starts from."""
    text = _padded([row.text for row in rows], padding)
    gold = _padded([row.translation for row in rows], padding)
    lengths = torch.tensor([len(row.text) for row in rows])
    return TranslationBatch(
        text=text,
        mask=(torch.arange(text.size(1)) < lengths.unsqueeze(1)).long(),
        before=torch.cat([torch.full_like(gold[:, :1], padding), gold[:, :-1]], dim=1),
        gold=gold,
    )


def translation_loss(model: Any, batch: TranslationBatch, *, smoothing: float = 0.0) -> Tensor:
    """Return the mean loss over real subwords of the translations.

    Padding, the last subword of the vocabulary, is never predicted and gets no gradient: it stays at zero.
    """
    padding = model.config.pad_token_id
    states = model.model(
        input_ids=batch.text, attention_mask=batch.mask, decoder_input_ids=batch.before
    ).last_hidden_state
    real = batch.gold != padding
    # The vocabulary is cut in the weights, not in the scores: those are by far the largest of all tensors.
    scores = linear(states[real], model.lm_head.weight[:padding], model.final_logits_bias[0, :padding])
    return cross_entropy(scores.float(), batch.gold[real], label_smoothing=smoothing)


def _padded(rows: Sequence[Sequence[int]], padding: int) -> Tensor:
    padded = torch.full((len(rows), max(map(len, rows))), padding)
    for place, row in enumerate(rows):
        padded[place, : len(row)] = torch.as_tensor(row)
    return padded
