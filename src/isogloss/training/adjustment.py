"""Adjusting an encoder with aligned sentence pairs: by training it, or by maps in closed form.

The states of the encoder before the training (f⁰) are computed once for each sentence, without dropout, and
cached.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from torch import Tensor

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.records import Value
from isogloss.core.run_parts import Updates
from isogloss.core.seeds import derive
from isogloss.encoders import fastest_attention, load_tokenizer, load_whole
from isogloss.encoders.added.language_context import (
    LanguageMaps,
    attach_language_maps,
    check_languages,
    refuse_mapped,
)
from isogloss.encoders.annotations import Tokenizer
from isogloss.nn.language_modules import Kind, LanguageMap, Moments, language_map
from isogloss.tasks.task import Model
from isogloss.training.aligned_batches import (
    AlignedBatch,
    CachedStates,
    CacheType,
    Caching,
    collate_pairs,
    reference_states,
    states_of,
)
from isogloss.training.aligned_pairs import AlignedPairs, PairEncoding, encode_pairs
from isogloss.training.batching import Bucketed, by_length
from isogloss.training.checkpoints import Checkpoints
from isogloss.training.evaluation import BUDGET
from isogloss.training.fit import Callbacks, fit, precision_of
from isogloss.training.precision import device, scoring
from isogloss.training.setting import AdjustSetting, Trained
from isogloss.training.states import check_layers

PairLoss = Callable[[Model, AlignedBatch], Tensor]
"""From the model and a batch to one number."""


@dataclass(frozen=True, kw_only=True)
class PairTraining:
    """The optimization of an encoder on sentence pairs."""

    epochs: int
    batch_size: int
    updates: Updates
    dropout: bool
    whole: bool = False
    """Whether the loss is one of whole batches: several processes compute all of each."""


def adjust(
    setting: AdjustSetting,
    loss: PairLoss,
    *,
    encoding: PairEncoding,
    training: PairTraining,
    kept: CacheType | None,
) -> Trained:
    """Train an encoder on aligned sentence pairs; without a step it stays as it is, to the bit.

    ``kept`` is the data type that f⁰ is cached in, None where the loss does not read it. A batch holds one
    pair of languages.
    """
    model, tokenizer, pairs = _read(setting, encoding, attention=fastest_attention())
    checkpoints = Checkpoints(setting.folder, training.updates.checkpoint_every)
    updates = replace(training.updates, precision=precision_of(training.updates.precision, checkpoints))
    before: CachedStates | None = None
    if kept and training.epochs:
        keeping = Caching(
            folder=setting.folder, kept=kept, precision=updates.precision, on_progress=setting.on_progress
        )
        before = reference_states(model, pairs, range(len(pairs)), keeping)
    batches = Bucketed(
        groups=pairs.groups,
        length=pairs.length,
        size=training.batch_size,
        epochs=training.epochs,
        seed=derive(setting.seed, "order"),
        make=lambda rows, _, __: replace(
            collate_pairs([pairs[row] for row in rows], before, padding=pairs.padding),
            is_whole=training.whole,
        ),
    )
    rows: list[dict[str, Value]] = list(pairs.rows)
    if len(batches):
        callbacks = Callbacks(checkpoints=checkpoints, on_progress=setting.on_progress, what="adjusting")
        run = partial(_loss, loss, training.dropout)
        rows += fit(model, batches, run, updates=updates, seed=setting.seed, callbacks=callbacks)
    return Trained(model.eval(), tokenizer, rows, pairs.warnings())


def _loss(loss: PairLoss, dropout: bool, model: Model, batch: AlignedBatch) -> Tensor:
    model.train(dropout)  # fit has switched it on.
    return loss(model, batch)


def adjust_by_map(setting: AdjustSetting, kind: Kind, *, encoding: PairEncoding, precision: str) -> Trained:
    """Attach the maps that ``language_maps`` finds to an encoder; its weights stay the same to the bit."""
    model, tokenizer, pairs = _read(setting, encoding)
    attach_language_maps(model, language_maps(model, pairs, kind, precision=precision))
    return Trained(model, tokenizer, list(pairs.rows), pairs.warnings())


def _read(
    setting: AdjustSetting, encoding: PairEncoding, *, attention: str = "sdpa"
) -> tuple[Model, Tokenizer, AlignedPairs]:
    """Load the encoder and encode the bitext; ConfigError where one is not for the other."""
    model, tokenizer = load_whole(setting.start, attention=attention), load_tokenizer(setting.start)
    refuse_mapped(model, setting.start)
    check_layers(model.config.num_hidden_layers, [encoding.layer])
    check_languages(model, chain.from_iterable(pair.split("-") for pair in setting.bitext))
    return model, tokenizer, encode_pairs(setting.bitext, tokenizer, encoding)


def language_maps(model: Model, pairs: AlignedPairs, kind: Kind, *, precision: str = "auto") -> LanguageMaps:
    """Find the map of each target language onto the source, from the last states of what is matched.

    All pairs of languages (en-es, en-ru) have one source. ConfigError when they do not, DataError when a pair
    has nothing that is matched.
    """
    sources = {languages.partition("-")[0] for languages in pairs.groups}
    if len(sources) != 1:
        raise ConfigError(
            f"language maps lead from each target language to one source: found the pairs "
            f"{', '.join(pairs.groups) or '(none)'}. Give pairs of one source (en-es, en-ru)."
        )
    model.to(device()).eval()
    with scoring(model.base_model, precision):
        maps = {
            languages.partition("-")[2]: _map(model, pairs, languages, rows, kind)
            for languages, rows in pairs.groups.items()
        }
    return LanguageMaps(sources.pop(), maps)


def _map(model: Model, pairs: AlignedPairs, languages: str, rows: range, kind: Kind) -> LanguageMap:
    moments = Moments(model.config.hidden_size)
    where = next(model.parameters()).device
    for group in by_length([pairs.length(row) for row in rows], BUDGET):
        batch = collate_pairs([pairs[rows[place]] for place in group], None, padding=pairs.padding)
        batch = batch.to(where)
        states = states_of(model, batch.passes, layer=-1)
        moments.add(batch.source.of(states), batch.target.of(states))
    if not moments.count:
        raise DataError(
            f"{languages}: no word is linked in any sentence pair that was read, so there is nothing to map "
            f"by. Align the bitext, or read whole sentences."
        )
    return language_map(moments, kind)
