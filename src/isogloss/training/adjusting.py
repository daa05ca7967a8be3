"""Adjusting an encoder with aligned sentence pairs: what all ways of doing it share.

The states of the encoder as it was (f⁰) are computed once for each sentence, without dropout, and kept.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

from torch import Tensor

from isogloss.core.errors import ConfigError
from isogloss.core.records import Value
from isogloss.core.seeds import derive
from isogloss.encoders import load_tokenizer, load_whole
from isogloss.encoders.attention import fastest_attention
from isogloss.encoders.speaking import check_languages, language_maps_of
from isogloss.training.aligned_batches import AlignedBatch, collate_pairs
from isogloss.training.aligned_pairs import Reading, encode_pairs
from isogloss.training.batching import Bucketed
from isogloss.training.checkpoints import Checkpoints
from isogloss.training.encoder_states import check_layers
from isogloss.training.fit import Watch, fit, precision_of
from isogloss.training.kept_states import Kept, KeptStates
from isogloss.training.optimizer import Schedule
from isogloss.training.setting import AdjustSetting
from isogloss.training.states_before import Keeping, states_before

PairLoss = Callable[[Any, AlignedBatch], Tensor]
"""From the model and a batch, on the model's device, to one number."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How long and how fast an encoder is adjusted."""

    epochs: int
    batch_size: int
    schedule: Schedule
    dropout: bool
    checkpoint_every: int


@dataclass(frozen=True)
class Adjusted:
    """An encoder, its tokenizer, the rows its adjustment left, and what there is to warn of."""

    model: Any
    tokenizer: Any
    rows: list[dict[str, Value]]
    warnings: tuple[str, ...] = ()


def adjust(
    setting: AdjustSetting, loss: PairLoss, *, reading: Reading, pace: Pace, kept: Kept | None
) -> Adjusted:
    """Train an encoder on aligned sentence pairs; without a step it stays as it is, to the bit.

    ``kept`` says in what f⁰ is kept, None that the loss does not look at it. A batch holds one pair of
    languages.
    """
    tokenizer = load_tokenizer(setting.start)
    model = load_whole(setting.start, attention=fastest_attention())
    refuse_mapped(model, setting.start)
    check_layers(model, [reading.layer])
    check_languages(model, chain.from_iterable(pair.split("-") for pair in setting.bitext))
    pairs = encode_pairs(setting.bitext, tokenizer, reading)
    checkpoints = Checkpoints(setting.folder, pace.checkpoint_every)
    schedule = replace(pace.schedule, precision=precision_of(pace.schedule.precision, checkpoints))
    before: KeptStates | None = None
    if kept and pace.epochs:
        keeping = Keeping(folder=setting.folder, kept=kept, precision=schedule.precision, tell=setting.tell)
        before = states_before(model, pairs, range(len(pairs)), keeping)
    batches = Bucketed(
        groups=list(pairs.groups.values()),
        length=pairs.length,
        size=pace.batch_size,
        epochs=pace.epochs,
        seed=derive(setting.seed, "order"),
        make=lambda rows: collate_pairs([pairs[row] for row in rows], before, padding=pairs.padding),
    )
    rows: list[dict[str, Value]] = list(pairs.rows)
    if len(batches):
        watch = Watch(checkpoints=checkpoints, tell=setting.tell, what="adjusting")
        run = partial(_loss, loss, pace.dropout)
        rows += fit(model, batches, run, schedule=schedule, seed=setting.seed, watch=watch).rows
    return Adjusted(model.eval(), tokenizer, rows, pairs.warnings())


def refuse_mapped(model: Any, start: str) -> None:
    """Raise ConfigError for an encoder with language maps: a change of its states would leave them behind."""
    if language_maps_of(model) is not None:
        raise ConfigError(
            f"{start}: this encoder maps each language's states already, and its maps would not fit it any "
            f"more. Start from the encoder without maps; map last, all pairs of languages at once."
        )


def _loss(loss: PairLoss, dropout: bool, model: Any, batch: AlignedBatch) -> Tensor:
    model.train(dropout)  # fit has switched it on.
    return loss(model, batch.to(next(model.parameters()).device))
