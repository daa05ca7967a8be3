"""Training on text as methods of pretraining see it: how it begins, its start, and the checks of its fields.

The table ``text-training`` has the functions that read the text, make the encoder and train it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isogloss.core.errors import ConfigError, missing_feature
from isogloss.core.records import Value
from isogloss.core.registry import Registry
from isogloss.core.run_parts import values_of
from isogloss.encoders import FAMILIES
from isogloss.encoders.family import Model, Tokenizer
from isogloss.training.setting import Pretraining, TextSetting, Trained

if TYPE_CHECKING:
    from torch import nn

    from isogloss.tasks.masked_lm import Masking, TextStream
    from isogloss.training.batching import BatchSampling, Parallel
    from isogloss.training.fit import Callback

TEXT_TRAINING: Registry[Callable[..., Any]] = Registry({}, features="text-training")
"""The functions that ``begin_pretraining`` ("begin") and ``train_on_text`` ("train") call."""

MIN_BLOCK = 8
"""Minimum number of subwords per row: six of text, two special."""


@dataclass(frozen=True, kw_only=True)
class PretrainingStart:
    """The model, tokenizer and text of a pretraining before its first step."""

    model: Model
    """The model with its masked-LM head and language modules, if any."""
    tokenizer: Tokenizer
    masking: Masking
    streams: Mapping[str, TextStream]
    """Training text."""
    held_out: Mapping[str, TextStream]
    """Text that is not trained on. Empty if none is held out."""
    sampling: BatchSampling
    """Sampling of batches from the text."""
    periodic: tuple[Callback, ...]
    """The callbacks that measure perplexity after each epoch."""
    rows: tuple[dict[str, Value], ...] = ()
    """Rows of the record from before the first step."""
    dropout: Mapping[str, float]
    """The dropout rates to save, by configuration field. Training on text uses different ones."""
    trained: tuple[nn.Parameter, ...] | None = None
    """The parameters that are trained. None trains all."""
    plateau_warnings: Callable[[Sequence[Mapping[str, Value]]], tuple[str, ...]]
    """From the rows of the training to warnings of languages that were not learned."""


def begin_pretraining(
    setting: TextSetting, method: Pretraining, *, attention: str = "eager", mask: str | None = None
) -> PretrainingStart:
    """Read the text, train the vocabulary, and create the encoder, as a method's fields specify.

    ``attention`` is one of transformers' names. Only the explicit ones have second derivatives. ``mask`` is
    for decoders, which predict from the preceding state: the subword that hides others, or "" for the
    tokenizer's mask. Raises ConfigError for rows longer than the encoder's positions, or if the method does
    not train this family, and DataError without held-out text.
    """
    start: PretrainingStart = _find("begin")(setting, method, attention=attention, mask=mask)
    return start


def train_on_text(
    start: PretrainingStart,
    setting: TextSetting,
    method: Pretraining,
    *,
    translations: Sequence[Parallel] = (),
    periodic: tuple[Callback, ...] = (),
) -> Trained:
    """Train a model to predict the hidden subwords of text and translations."""
    trained: Trained = _find("train")(start, setting, method, translations=translations, periodic=periodic)
    return trained


def _find(step: str) -> Callable[..., Any]:
    if step not in TEXT_TRAINING:
        raise missing_feature("training on text", "Install isogloss again, or take an encoder that exists.")
    return TEXT_TRAINING[step]


def check_objective(name: str, family: str, *, next_token: bool) -> None:
    """Raise ConfigError for a decoder trained like an encoder, or the reverse.

    An empty ``family`` is not known yet.
    """
    if not family or FAMILIES[family].is_decoder == next_token:
        return
    objective = "a decoder, which predicts a subword from the state before it"
    method = "masked-next-token"
    if next_token:
        objective = "not a decoder, so it predicts a hidden subword at its position"
        method = "masked-language-modelling"
    raise ConfigError(f"{name}: {family} is {objective}. Choose the method {method}, or a different encoder.")


def check_fields(method: Pretraining, further: Mapping[str, bool]) -> None:
    """Raise ConfigError for an invalid field.

    ``further`` states which of the method's own fields are valid.
    """
    training = method.training
    validity = {
        "steps": training.steps >= 0,
        "block": training.block >= MIN_BLOCK,
        "batch_subwords": training.batch_subwords >= training.block,
        "masked": 0 < training.masked <= 1,
        "temperature": training.temperature > 0,
        "vocabulary_lines": training.vocabulary_lines >= 1,
        "evaluate_every": training.evaluate_every is None or training.evaluate_every >= 1,
        **further,
    }
    for field, is_valid in validity.items():
        if not is_valid:
            raise ConfigError(
                f"{method.name}: {field} cannot be {values_of(method)[field]}. Shares are from 0 to 1, "
                f"counts are positive, block is {MIN_BLOCK} or more and batch_subwords at least block."
            )
