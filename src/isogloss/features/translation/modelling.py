"""A translation model from bitext: an ordinary Marian Transformer, one for all pairs and both directions.

Vaswani et al. (2017), Section 5, in a small size; a subword before the text names the target language
(Johnson et al. 2017, Section 3). The loss is the cross entropy of each subword of the translation, with label
smoothing. The model is saved as a Hugging Face folder that the translators read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.identity import derive
from isogloss.core.run_parts import NESTED, Positive, Share, Updates, nested_fields, with_fields
from isogloss.data.examples import Translation
from isogloss.encoders.family import Model, Tokenizer
from isogloss.encoders.subwords import pad_rows, padding_mask
from isogloss.features.translation.scores import chrf
from isogloss.tasks.batch import row_ranges, to_device
from isogloss.training.length_batches import by_length
from isogloss.training.setting import RunSetting, Trained

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from isogloss.features.translation.seq2seq_models import MarianShape, TranslationSubwords
    from isogloss.training.fit import Note

METRIC = "chrf"


class TranslationRow(NamedTuple):
    """Subword ids of a text, after its language code, and of its translation. Both end in </s>."""

    text: np.ndarray
    translation: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationBatch:
    """Texts and translations, each padded to the longest."""

    text: Tensor
    """[batch subword], integer."""
    mask: Tensor
    """[batch subword], 1 at real subwords of the text."""
    decoder_input: Tensor
    """[batch subword], integer: the translation shifted right by one."""
    gold: Tensor
    """[batch subword], integer: the translation."""

    def to(self, device: torch.device) -> "TranslationBatch":
        """Return the batch on a device."""
        return to_device(self, device)

    def parts(self, count: int) -> list[tuple["TranslationBatch", float]]:
        """Split into at most ``count`` batches of nearly equal rows, each with its share of the loss."""
        padding = self.decoder_input[0, 0]  # Also the decoder's start subword.
        lengths = (self.gold != padding).sum(dim=1)
        return [
            (
                TranslationBatch(
                    **{
                        field.name: getattr(self, field.name)[rows.start : rows.stop]
                        for field in fields(self)
                    }
                ),
                float(lengths[rows.start : rows.stop].sum() / lengths.sum()),
            )
            for rows in row_ranges(len(self.gold), count)
        ]


def collate_translations(rows: Sequence[TranslationRow], *, padding: int) -> TranslationBatch:
    """Pad texts and translations. ``padding`` is also the decoder's start subword."""
    import torch

    gold = pad_rows([row.translation.tolist() for row in rows], padding)
    return TranslationBatch(
        text=pad_rows([row.text.tolist() for row in rows], padding),
        mask=padding_mask([len(row.text) for row in rows]),
        decoder_input=torch.cat([torch.full_like(gold[:, :1], padding), gold[:, :-1]], dim=1),
        gold=gold,
    )


def translation_loss(model: Model, batch: TranslationBatch, *, smoothing: float = 0.0) -> Tensor:
    """Return the mean loss over the real subwords of the translations.

    Padding, the last id of the vocabulary, is never predicted and gets no gradient: its embedding stays zero.
    """
    from torch.nn.functional import cross_entropy, linear

    padding = model.config.pad_token_id
    states = model.model(
        input_ids=batch.text, attention_mask=batch.mask, decoder_input_ids=batch.decoder_input
    ).last_hidden_state
    is_subword = batch.gold != padding
    # Cutting the vocabulary in the weights avoids a copy of the scores, by far the largest tensor.
    scores = linear(states[is_subword], model.lm_head.weight[:padding], model.final_logits_bias[0, :padding])
    return cross_entropy(scores.float(), batch.gold[is_subword], label_smoothing=smoothing)


@dataclass(frozen=True, kw_only=True)
class TranslationSetting(RunSetting):
    """The input of a method that trains a translation model."""

    bitext: Mapping[str, list[Translation]]
    """By pair of languages (en-es): translations, trained on in both directions."""
    dev: Mapping[str, list[Translation]]
    """Translations by pair of languages, whose chrF selects the checkpoint. Empty for none."""


@dataclass(frozen=True, kw_only=True)
class TranslationModelling:
    """Train one model to translate in both directions of every pair."""

    name: ClassVar[str] = "translation-modelling"

    steps: Positive = 20000
    """Updates."""

    batch_subwords: Positive = 4096
    """Subwords per update, padding included: the longer side of each pair."""

    layers: Positive = 3
    """Transformer layers of the encoder, and as many of the decoder."""

    dim: Positive = 256
    """Width of the states."""

    heads: Positive = 4
    """Number of attention heads, a divisor of dim."""

    feed_forward: Positive = 1024
    """Width of the feed-forward layer."""

    vocabulary: Positive = 12000
    """Subwords of the vocabulary, which all languages share."""

    vocabulary_lines: Positive = 200_000
    """Number of lines on which the vocabulary is trained, equally many from each side of each pair."""

    longest: Positive = 128
    """Maximum length of training text in subwords. Longer pairs are skipped."""

    smoothing: Share = 0.1
    """Share of a label that is spread over the whole vocabulary."""

    dropout: Share = 0.1
    """Dropout of states."""

    updates: Updates = field(
        default=Updates(learning_rate=1e-3, weight_decay=0.0, beta2=0.98, epsilon=1e-9, checkpoint_every=500),
        metadata=NESTED,
    )
    """Optimization of the training."""

    dev_sentences: Positive = 200
    """Translations of each direction, drawn at random, by whose chrF the weights are chosen."""

    evaluations: Positive = 5
    """Number of times that they are translated, evenly spaced, the last at the end."""

    _nested = nested_fields()

    def __post_init__(self) -> None:
        """Raise ConfigError for invalid fields."""
        conditions = {
            "steps": self.steps >= 1,
            "heads": self.heads >= 1 and self.dim % self.heads == 0,
            "longest": self.longest >= 1,
            "batch_subwords": self.batch_subwords >= self.longest,
            "smoothing": 0 <= self.smoothing < 1,
            "vocabulary_lines": self.vocabulary_lines >= 1,
            "evaluations": self.evaluations >= 1,
        }
        for name, is_met in conditions.items():
            if not is_met:
                raise ConfigError(
                    f"{self.name}: {name} cannot be {getattr(self, name)}. Counts are positive, heads divide "
                    f"dim ({self.dim}), smoothing is below 1 and batch_subwords at least longest."
                )

    def train(self, setting: TranslationSetting) -> Trained:
        """Train the vocabulary and the model."""
        from isogloss.encoders.computation import fastest_attention
        from isogloss.features.translation.seq2seq_models import new_marian
        from isogloss.training.checkpoints import Checkpoints
        from isogloss.training.fit import Callbacks, fit, precision_of

        tokenizer = self._tokenizer(setting)
        pairs = {name: _encode_pairs(setting.bitext[name], tokenizer) for name in setting.bitext}
        rows, notes = self._rows(pairs, tokenizer)
        model = new_marian(
            self._shape(), tokenizer, seed=derive(setting.seed, "model"), attention=fastest_attention()
        )
        batches = _PairBatches(rows, self, derive(setting.seed, "order"), tokenizer.pad_token_id)
        checkpoints = Checkpoints(setting.folder, self.updates.checkpoint_every)
        precision = precision_of(self.updates.precision, checkpoints)
        callbacks = Callbacks(
            evaluate=partial(self._notes, model, tokenizer, setting, precision) if setting.dev else None,
            evaluate_at=tuple(
                self.steps * part // self.evaluations for part in range(1, self.evaluations + 1)
            ),
            checkpoints=checkpoints,
            on_progress=setting.on_progress,
            what="training a translation model",
        )
        loss = partial(translation_loss, smoothing=self.smoothing)
        updates = with_fields(self.updates, precision=precision)
        training_notes = fit(model, batches, loss, updates=updates, seed=setting.seed, callbacks=callbacks)
        return Trained(model, tokenizer, [*notes, *training_notes])

    def _tokenizer(self, setting: TranslationSetting) -> Tokenizer:
        """Train the vocabulary, or read the vocabulary of an interrupted run."""
        from isogloss.encoders.learned_subwords import write_tokenizer
        from isogloss.features.translation.seq2seq_models import (
            read_translation_tokenizer,
            train_translation_tokenizer,
        )

        path = setting.folder / "tokenizer" / "tokenizer.json"
        if path.exists():
            return read_translation_tokenizer(path)
        share = max(1, self.vocabulary_lines // (2 * len(setting.bitext)))
        lines = (
            side
            for pairs in setting.bitext.values()
            for pair in islice(pairs, share)
            for side in (pair.first, pair.second)
        )
        languages = dict.fromkeys(chain.from_iterable(name.split("-") for name in setting.bitext))
        tokenizer = train_translation_tokenizer(lines, languages=tuple(languages), size=self.vocabulary)
        write_tokenizer(tokenizer, path)
        return tokenizer

    def _rows(
        self, pairs: "Mapping[str, list[_Sides]]", tokenizer: Tokenizer
    ) -> tuple[list[TranslationRow], list[Note]]:
        """Return the rows of all pairs in both directions, and the number of pairs skipped as too long."""
        from isogloss.features.translation.seq2seq_models import language_subword

        rows: list[TranslationRow] = []
        notes: list[Note] = []
        for name, sides in pairs.items():
            fitting = [pair for pair in sides if max(len(side) for side in pair) < self.longest]
            prefixes = (
                tokenizer.convert_tokens_to_ids(language_subword(language)) for language in name.split("-")
            )
            first_prefix, second_prefix = (np.array([prefix], dtype=np.int32) for prefix in prefixes)
            rows += [TranslationRow(np.concatenate([second_prefix, x]), y) for x, y in fitting]
            rows += [TranslationRow(np.concatenate([first_prefix, y]), x) for x, y in fitting]
            notes.append({"language": name, "pairs": len(fitting), "left_out": len(sides) - len(fitting)})
        if not rows:
            raise DataError(
                f"{self.name}: no pair of texts with at most {self.longest} subwords. Raise longest."
            )
        return rows, notes

    def _shape(self) -> MarianShape:
        from isogloss.features.translation.seq2seq_models import MarianShape

        return MarianShape(
            layers=self.layers,
            decoder_layers=self.layers,
            dim=self.dim,
            heads=self.heads,
            feed_forward=self.feed_forward,
            positions=max(MarianShape.positions, self.longest),
            dropout=self.dropout,
        )

    def _notes(
        self, model: Model, tokenizer: Tokenizer, setting: TranslationSetting, precision: str, step: int
    ) -> list[Note]:
        """Translate the dev sentences greedily, both ways, and score them."""
        from isogloss.features.translation.seq2seq_models import subwords_for
        from isogloss.training.precision import scoring

        notes: list[Note] = []
        for name, pairs in setting.dev.items():
            texts = [(pair.first, pair.second) for pair in pairs[: self.dev_sentences]]
            first_language, second_language = name.split("-")
            reversed_texts = [pair[::-1] for pair in texts]
            for direction, sides in (
                ((first_language, second_language), texts),
                ((second_language, first_language), reversed_texts),
            ):
                sources, references = zip(*sides, strict=True)
                subwords = subwords_for(tokenizer, model.config, direction)
                with scoring(model, precision):
                    translations = _translate_texts(model, subwords, sources, self.batch_subwords)
                note: Note = {"step": step, "language": "-".join(direction), "split": "dev", "metric": METRIC}
                notes.append({**note, "score": chrf(references, translations)})
        return notes


_Sides = tuple[np.ndarray, np.ndarray]


def _encode_pairs(pairs: list[Translation], tokenizer: Tokenizer) -> list[_Sides]:
    """Return both texts of every pair as subwords, each ending in </s>."""
    from isogloss.tasks.masked_lm import subwords_of

    end = [tokenizer.eos_token_id]
    lines = chain.from_iterable((pair.first, pair.second) for pair in pairs)
    rows = (np.array([*ids, *end], dtype=np.int32) for ids in subwords_of(lines, tokenizer))
    return list(zip(rows, rows, strict=True))


def _translate_texts(
    model: Model, subwords: TranslationSubwords, texts: tuple[str, ...], budget: int
) -> list[str]:
    from isogloss.features.translation.seq2seq_models import generate

    rows = [row[: subwords.longest] for row in subwords.encode(texts)]
    generated: list[list[int]] = [[] for _ in rows]
    for batch in by_length([len(row) for row in rows], budget):
        translations = generate(
            model, [rows[index] for index in batch], first=subwords.direction.first, longest=subwords.longest
        )
        for index, row in zip(batch, translations, strict=True):
            generated[index] = row
    return subwords.decode(generated)


@dataclass(frozen=True)
class _PairBatches:
    """Batches of pairs of similar lengths. Batch i depends only on seed and epoch.

    Every pair occurs about once an epoch.
    """

    rows: list[TranslationRow]
    method: TranslationModelling
    seed: int
    padding: int
    _plan: list[tuple[int, list[np.ndarray]]] = field(default_factory=list)

    def __len__(self) -> int:
        return self.method.steps

    def __getitem__(self, step: int) -> TranslationBatch:
        if not self._plan:
            self._plan.append((0, self._epoch(0)))
        # Each epoch is cut into slightly different numbers of batches. All use the first length.
        epoch, index = divmod(step, len(self._plan[0][1]))
        if self._plan[-1][0] != epoch:
            self._plan[1:] = [(epoch, self._epoch(epoch))]
        batches = self._plan[-1][1]
        batch = batches[index % len(batches)]
        return collate_translations([self.rows[row] for row in batch], padding=self.padding)

    def _epoch(self, epoch: int) -> list[np.ndarray]:
        rng = np.random.Generator(np.random.PCG64(derive(self.seed, "pairs", epoch)))
        sizes = np.array([[max(len(side) for side in row), len(row.text)] for row in self.rows])
        order = np.lexsort((rng.random(len(sizes)), sizes[:, 1], sizes[:, 0]))
        batches = by_length([int(size) for size in sizes[order, 0]], self.method.batch_subwords)
        return [order[batches[index]] for index in rng.permutation(len(batches))]
