"""Material for timing: a tagging corpus of mean length 36 subwords, and an encoder with random weights.

Speed does not depend on what the words mean, so the words are drawn; lengths are spread as in treebanks.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from isogloss.core.run_parts import Architecture, Optimization
from isogloss.core.run_parts import with_fields
from isogloss.data.examples import TaggedSentence
from isogloss.features.pretraining.starts import new_encoder
from isogloss.encoders.saving import save_model
from isogloss.tasks.batch import EncodedRow
from isogloss.tasks.tagging import UPOS

MEAN_WORDS = 26
SPREAD = 0.55
"""Mean and log standard deviation of the number of words of a sentence."""

SPLIT = 0.3
"""Share of words of two subwords: 26 words come to 34 subwords, 36 with the special ones."""

SHAPES = {
    "tiny": Architecture(layers=2, dim=32, heads=2, feed_forward=64, vocabulary=12000),
    "small": Architecture(layers=4, dim=256, heads=4, feed_forward=1024, vocabulary=12000),
    "base": Architecture(layers=12, dim=768, heads=12, feed_forward=3072, vocabulary=119547),
    "paper": Architecture(layers=8, dim=512, heads=8, feed_forward=2048, vocabulary=32000),
}
"""Shapes: for ``--quick``, the shipped recipes' encoders, multilingual BERT, the pretraining papers."""

BATCH = 32


@dataclass(frozen=True)
class Material:
    """An encoder with a head on disk, and sentences."""

    folder: Path
    sentences: list[TaggedSentence]

    @cached_property
    def tokenizer(self) -> Any:
        from isogloss.encoders.tokenizers import load_tokenizer

        return load_tokenizer(str(self.folder))

    @cached_property
    def rows(self) -> list[EncodedRow]:
        return UPOS.encode(self.sentences, self.tokenizer, limit=128, overlap=64)

    @property
    def subwords(self) -> int:
        """Real subwords, padding left out."""
        return sum(len(row.subwords) for row in self.rows)

    @cached_property
    def features(self) -> list[dict[str, list[int]]]:
        """Return the same rows in Trainer's form: a label for each first subword, -100 elsewhere."""
        rows = []
        for row in self.rows:
            labels = np.full(len(row.subwords), -100)
            labels[list(row.positions)] = row.gold
            ids = list(row.subwords)
            rows.append({"input_ids": ids, "attention_mask": [1] * len(ids), "labels": labels.tolist()})
        return rows

    def optimization(self, precision: str) -> Optimization:
        return with_fields(
            Optimization(), precision=precision, epochs=1, checkpoint_every=0, batch_size=BATCH
        )


def make_material(folder: Path, shape: Architecture, *, sentences: int) -> Material:
    """Write an encoder with a tagging head into a folder and draw sentences."""
    tokenizer = _tokenizer(shape.vocabulary)
    encoder = new_encoder(shape, tokenizer, seed=0)
    encoder.config.hidden_dropout_prob = encoder.config.attention_probs_dropout_prob = shape.dropout
    save_model(encoder, tokenizer, folder / "encoder")
    save_model(UPOS.head(folder / "encoder", seed=0), tokenizer, folder / "model")
    return Material(folder / "model", _sentences(sentences, shape.vocabulary))


def matrix_parameters(model: torch.nn.Module) -> int:
    """Count the weights that every subword is multiplied with."""
    return sum(part.weight.numel() for part in model.modules() if isinstance(part, torch.nn.Linear))


def _tokenizer(size: int) -> Any:
    from transformers import BertTokenizer

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = [f"w{index}" for index in range(size - len(special) - 1)]
    pieces = [*special, "##s", *words]
    return BertTokenizer(vocab={piece: index for index, piece in enumerate(pieces)}, do_lower_case=False)


def _sentences(count: int, vocabulary: int) -> list[TaggedSentence]:
    rng = np.random.Generator(np.random.PCG64(0))
    lengths = rng.lognormal(np.log(MEAN_WORDS) - SPREAD**2 / 2, SPREAD, size=count).round().clip(2, 90)
    sentences = []
    for index, length in enumerate(lengths.astype(int)):
        words = [f"w{n}{'s' if split else ''}" for n, split in _words(rng, length, vocabulary - 6)]
        tags = tuple(UPOS.labels[n] for n in rng.integers(len(UPOS.labels), size=length))
        sentences.append(TaggedSentence(id=str(index), words=tuple(words), tags=tags))
    return sentences


def _words(rng: np.random.Generator, length: int, kinds: int) -> list[tuple[int, bool]]:
    return list(zip(rng.integers(kinds, size=length), rng.random(length) < SPLIT, strict=True))
