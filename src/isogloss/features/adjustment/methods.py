"""Adjustments: an encoder learns from word-aligned bitext before any task.

Cross-lingual adjustment is "The Impact of Cross-Lingual Adjustment of Contextual Word Representations on
Zero-Shot Transfer", Section 3, Eq. 1, after Cao et al. (2020). Rates, lengths and dropout follow the released
code of both papers, except that their rate is constant after the warm-up (``rate_schedule = "constant"``).
Here it falls to 0, as in every training.

Contrastive alignment is InfoNCE in both directions at temperature 0.1, as Wu & Dredze (2020) align words.

Procrustes and centring do not change the encoder, and map each target language's last states onto the
source's. Schönemann (1966) gives the orthogonal map in closed form. Artetxe et al. (2016) and Wang et al.
(2019, "Cross-Lingual BERT Transformation") align words and contextual states with it after centring both
languages: x ↦ (x - t̄)R + s̄. Libovický et al. (2020), "On the Language Neutrality of Pre-trained
Multilingual Representations", subtract each language's mean; Zhao et al. (2021), "Inducing Language-Agnostic
Multilingual Representations", also divide by the standard deviation.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.identity import derive
from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.records import Value
from isogloss.core.run_parts import (
    NESTED,
    Count,
    Positive,
    Precision,
    Rate,
    Updates,
    Weight,
    Whole,
    nested_fields,
    with_fields,
)
from isogloss.encoders.family import Model, Tokenizer, check_layers
from isogloss.training.bitext import AlignedBitext, Form, PairEncoding, Word, read_bitext
from isogloss.training.length_batches import BUDGET, by_length
from isogloss.training.memory import Cost, Load, subwords_of
from isogloss.training.setting import Adjustment, AdjustSetting, Trained

if TYPE_CHECKING:
    from torch import Tensor

    from isogloss.encoders.added.active_language import LanguageMaps
    from isogloss.encoders.added.language_layers import LanguageMap
    from isogloss.features.adjustment.aligned_batches import AlignedBatch
    from isogloss.features.adjustment.maps import Kind


@dataclass(frozen=True, kw_only=True)
class PairTraining:
    """Length and batches of a training on sentence pairs."""

    epochs: Count = 1
    """Passes over the sentence pairs. 0 does not change the encoder."""

    batch_size: Positive = 32
    """Sentence pairs per step, all of one pair of languages. In contrast, the other pairs are the negatives.
    """

    dropout: bool = True
    """Whether dropout is on while the encoder is trained, as in the released code. It is always off for f⁰.
    """


@dataclass(frozen=True, kw_only=True)
class LevelEncoding:
    """Encoding of sentence pairs whose words or sentences are matched."""

    level: Literal["word", "sentence"] = "word"
    """Units that are matched: linked words, or the means of whole sentences."""

    word: Word = "average"
    """Representation of a word: average, first, last, subwords (each subword separately), or aligned-subwords
    (links connect subwords)."""

    longest: Positive = 64
    """Maximum sentence length in words. Pairs with a longer sentence are skipped."""

    def pairs(self, *, layer: int = -1, drop_identical: bool = False) -> PairEncoding:
        """Return the encoding of the pairs."""
        return PairEncoding(
            pulled="words" if self.level == "word" else "sentences",
            word=self.word,
            longest=self.longest,
            layer=layer,
            drop_identical=drop_identical,
        )


@dataclass(frozen=True, kw_only=True)
class CrossLingualAdjustment(Adjustment):
    """Align contextual word representations by minimising the distance of aligned words (Eq. 1)."""

    name: ClassVar[str] = "cross-lingual-adjustment"
    version: ClassVar[int] = 2  # In the first, f⁰ was stored in float16.
    is_whole: ClassVar[bool] = False

    form: Form = "sum"
    """sum: Eq. 1 as printed, with equal weights of all pairs and source words. mean: each term is averaged
    over its words and dimensions, as in the released code, so a pair weighs more than a source word. Both
    train at the same rate, because Adam is invariant to the scale of the loss."""

    stay: Weight = 1.0
    """Weight of the second term, which anchors source words at their states before the training."""

    encoding: PairEncoding = field(default=PairEncoding(), metadata=NESTED)
    """Aligned units and the states that represent them."""

    training: PairTraining = field(default=PairTraining(), metadata=NESTED)
    """Length and batches of the training."""

    updates: Updates = field(
        default=Updates(learning_rate=5e-5, weight_decay=0.0, beta2=0.98, epsilon=1e-9, clip=0.0),
        metadata=NESTED,
    )
    """Optimization: Adam as in Cao et al. (2020), after Vaswani et al. (2017), Section 5.3. Gradients are not
    clipped, because clipping would make the sum of Eq. 1 depend on the number of words in a batch."""

    _nested = nested_fields()

    @property
    def needs_links(self) -> bool:
        """Whether it reads which words are linked."""
        return self.encoding.needs_links

    def cost(self, pairs: int) -> Cost:
        """Return the cost of both sides of its batches, and of f⁰."""
        return _cost(self, pairs)

    def train(self, setting: AdjustSetting) -> Trained:
        """Adjust the encoder on aligned bitext. Without pairs or steps it is unchanged, to the bit."""
        return adjust(setting, self)

    def loss(self, model: Model, original: Model | None, batch: AlignedBatch) -> Tensor:
        """Return Eq. 1: Σ‖f(s)−f(t)‖² over aligned pairs + Σ‖f(s)−f⁰(s)‖² over all source words."""
        from isogloss.features.adjustment.aligned_batches import alignment_terms

        terms = alignment_terms(model, original, batch, layer=self.encoding.layer, form=self.form)
        return terms.aligned + self.stay * terms.anchored


@dataclass(frozen=True, kw_only=True)
class ContrastiveAlignment(Adjustment):
    """Train by contrast: a word must be nearer to its translation than to all other words of the batch.

    Words with the same spelling in either language are not used as negatives, because function words occur in
    every sentence.
    """

    name: ClassVar[str] = "contrastive-alignment"
    version: ClassVar[int] = 2  # In the first, f⁰ was stored in float16.
    is_whole: ClassVar[bool] = True

    temperature: Rate = 0.1
    """Divisor of the cosines: the lower, the more the nearest negatives count."""

    stay: Weight = 0.0
    """Weight of anchoring the source (the second term of cross-lingual adjustment, a mean)."""

    layer: Whole = -1
    """Layer whose states are aligned. -1 is the last, 0 the embeddings."""

    reading: LevelEncoding = field(default=LevelEncoding(), metadata=NESTED)
    """Contrasted units and the states that represent them."""

    training: PairTraining = field(default=PairTraining(), metadata=NESTED)
    """Length and batches of the training."""

    updates: Updates = field(default=Updates(learning_rate=2e-5, weight_decay=0.0), metadata=NESTED)
    """Optimization of the training."""

    _nested = nested_fields()

    def __post_init__(self) -> None:
        """Refuse parts: the negatives of an item are all others of its batch."""
        if self.updates.accumulation not in (None, 1):
            raise ConfigError(
                f"{self.name}: accumulation cannot be {self.updates.accumulation}: each item is contrasted "
                f"with all others of its batch, and a part has fewer. Remove it; gradient_checkpointing "
                f"takes less memory, too."
            )

    @property
    def encoding(self) -> PairEncoding:
        """Aligned units and the states that represent them."""
        return self.reading.pairs(layer=self.layer)

    @property
    def needs_links(self) -> bool:
        """Whether it reads which words are linked."""
        return self.encoding.needs_links

    def cost(self, pairs: int) -> Cost:
        """Return the cost of both sides of its batches, and of f⁰ where the source is anchored."""
        return _cost(self, pairs)

    def train(self, setting: AdjustSetting) -> Trained:
        """Align the encoder on bitext. Without pairs or steps it is unchanged, to the bit."""
        return adjust(setting, self)

    def loss(self, model: Model, original: Model | None, batch: AlignedBatch) -> Tensor:
        """Return the contrast of translations in both directions, and the distance moved by its weight."""
        from isogloss.features.adjustment.aligned_batches import (
            bidirectional_contrast,
            distance_moved,
            states_of,
        )

        states = states_of(model, batch.passes, layer=self.layer)
        source, target = batch.source.of(states), batch.target.of(states)
        contrast = bidirectional_contrast(source, target, batch.same(), temperature=self.temperature)
        return contrast + self.stay * distance_moved(states, original, batch, layer=self.layer, form="mean")


def _cost(method: CrossLingualAdjustment | ContrastiveAlignment, pairs: int) -> Cost:
    training = method.training
    return Cost(
        batch=Load(rows=2 * training.batch_size, length=subwords_of(method.encoding.longest)),
        steps=pairs * training.epochs / training.batch_size,
        updates=method.updates,
        dropout=training.dropout,
        copies=1.0 if method.stay else 0.0,
    )


def adjust(setting: AdjustSetting, method: CrossLingualAdjustment | ContrastiveAlignment) -> Trained:
    """Train an encoder on aligned sentence pairs. Without a step it is unchanged, to the bit.

    A batch contains one pair of languages. The model before the first step, f⁰, is copied if the source is
    anchored.
    """
    from isogloss.encoders.computation import fastest_attention

    model, tokenizer, bitext = _read(setting, method.encoding, attention=fastest_attention())
    rows = adjust_model(
        model, bitext, method, seed=setting.seed, folder=setting.folder, on_progress=setting.on_progress
    )
    return Trained(model.eval(), tokenizer, [*bitext.rows, *rows], bitext.warnings())


def adjust_model(
    model: Model,
    bitext: AlignedBitext,
    method: CrossLingualAdjustment | ContrastiveAlignment,
    *,
    seed: int,
    folder: Path,
    on_progress: OnProgress = no_progress,
) -> list[dict[str, Value]]:
    """Train a model on encoded bitext, with checkpoints in a folder, and return the rows of its training."""
    from isogloss.features.adjustment.aligned_batches import aligned_batch, frozen_copy
    from isogloss.training.batching import Bucketed
    from isogloss.training.checkpoints import Checkpoints
    from isogloss.training.fit import Callbacks, fit, precision_of

    checkpoints = Checkpoints(folder, method.updates.checkpoint_every)
    updates = with_fields(method.updates, precision=precision_of(method.updates.precision, checkpoints))
    batches = Bucketed(
        groups=bitext.groups,
        length=bitext.length,
        size=method.training.batch_size,
        epochs=method.training.epochs,
        seed=derive(seed, "order"),
        make=lambda rows, _, __: replace(aligned_batch(bitext, rows), is_whole=method.is_whole),
    )
    if not len(batches):
        return []
    original = frozen_copy(model) if method.stay else None
    callbacks = Callbacks(checkpoints=checkpoints, on_progress=on_progress, what="adjusting")

    def loss(trained_model: Model, batch: AlignedBatch) -> Tensor:
        trained_model.train(method.training.dropout)  # fit has switched it on.
        return method.loss(trained_model, original, batch)

    return fit(model, batches, loss, updates=updates, seed=seed, callbacks=callbacks)


def _read(
    setting: AdjustSetting, encoding: PairEncoding, *, attention: str = "sdpa"
) -> tuple[Model, Tokenizer, AlignedBitext]:
    """Load the encoder and read the bitext. Raises ConfigError if they do not fit each other."""
    from isogloss.encoders.added.active_language import check_languages, refuse_mapped
    from isogloss.encoders.loading import load_whole
    from isogloss.encoders.tokenizers import load_tokenizer

    model, tokenizer = load_whole(setting.start, attention=attention), load_tokenizer(setting.start)
    refuse_mapped(model, setting.start)
    check_layers(model.config.num_hidden_layers, [encoding.layer])
    check_languages(model, chain.from_iterable(pair.split("-") for pair in setting.bitext))
    return model, tokenizer, read_bitext(setting.bitext, tokenizer, encoding)


@dataclass(frozen=True, kw_only=True)
class Procrustes(Adjustment):
    """Rotate the last states of each target language onto the source's."""

    name: ClassVar[str] = "procrustes"
    maps: ClassVar[bool] = True

    reading: LevelEncoding = field(default=LevelEncoding(), metadata=NESTED)
    """Matched units and the states that represent them."""

    drop_identical: bool = False
    """Whether to skip words with the same spelling in both languages."""

    precision: Precision = "auto"
    """auto (measured once per machine), float32 or bfloat16."""

    _nested = nested_fields()

    @property
    def needs_links(self) -> bool:
        """Whether it reads which words are linked."""
        return self.reading.pairs().needs_links

    def train(self, setting: AdjustSetting) -> Trained:
        """Fit the rotations. The encoder is unchanged, to the bit."""
        encoding = self.reading.pairs(drop_identical=self.drop_identical)
        return attach_maps(setting, "rotation", encoding, self.precision)


@dataclass(frozen=True, kw_only=True)
class Centring(Adjustment):
    """Shift the last states of each target language to the source's mean, and scale them too if set.

    The source keeps its own mean and scale, so that a model of the source reads its language as before.
    """

    name: ClassVar[str] = "centring"
    maps: ClassVar[bool] = True

    scale: bool = False
    """Whether the standard deviation of each dimension becomes the source's too (z-normalisation)."""

    reading: LevelEncoding = field(default=LevelEncoding(), metadata=NESTED)
    """Units that are averaged (words or sentences) and the states that represent them."""

    precision: Precision = "auto"
    """auto (measured once per machine), float32 or bfloat16."""

    _nested = nested_fields()

    @property
    def needs_links(self) -> bool:
        """Whether it reads which words are linked."""
        return self.reading.pairs().needs_links

    def train(self, setting: AdjustSetting) -> Trained:
        """Fit the shifts. The encoder is unchanged, to the bit."""
        kind: Kind = "normalisation" if self.scale else "centring"
        return attach_maps(setting, kind, self.reading.pairs(), self.precision)


def attach_maps(setting: AdjustSetting, kind: Kind, encoding: PairEncoding, precision: str) -> Trained:
    """Attach the map of each target language to an encoder, whose weights stay the same to the bit."""
    from isogloss.encoders.added.active_language import attach_language_maps

    model, tokenizer, bitext = _read(setting, encoding)
    attach_language_maps(model, language_maps(model, bitext, kind, precision=precision))
    return Trained(model, tokenizer, list(bitext.rows), bitext.warnings())


def language_maps(
    model: Model, bitext: AlignedBitext, kind: Kind, *, precision: str = "auto"
) -> LanguageMaps:
    """Return the map of each target language onto the source, from the last states of aligned items.

    All pairs of languages (en-es, en-ru) have one source: ConfigError when they do not. DataError when a pair
    has nothing aligned.
    """
    from isogloss.encoders.added.active_language import LanguageMaps
    from isogloss.training.precision import device, scoring

    sources = {languages.partition("-")[0] for languages in bitext.groups}
    if len(sources) != 1:
        raise ConfigError(
            f"language maps lead from each target language to one source: found the pairs "
            f"{', '.join(bitext.groups) or '(none)'}. Give pairs of one source (en-es, en-ru)."
        )
    model.to(device()).eval()
    with scoring(model.base_model, precision):
        maps = {pair.partition("-")[2]: _map(model, bitext, pair, kind) for pair in bitext.groups}
    return LanguageMaps(sources.pop(), maps)


def _map(model: Model, bitext: AlignedBitext, languages: str, kind: Kind) -> LanguageMap:
    from isogloss.features.adjustment.aligned_batches import aligned_batch, states_of
    from isogloss.features.adjustment.maps import Moments, language_map
    from isogloss.training.precision import device

    moments, rows = Moments(model.config.hidden_size), bitext.groups[languages]
    for group in by_length([bitext.length(row) for row in rows], BUDGET):
        batch = aligned_batch(bitext, [rows[index] for index in group]).to(device())
        states = states_of(model, batch.passes, layer=-1)
        moments.add(batch.source.of(states), batch.target.of(states))
    if not moments.count:
        raise DataError(
            f"{languages}: no word is linked in any sentence pair that was read, so no map can be fitted. "
            f"Align the bitext, or read whole sentences."
        )
    return language_map(moments, kind)
