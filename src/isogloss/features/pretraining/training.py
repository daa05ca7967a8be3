"""Pretraining on raw text: the vocabulary, the streams of subwords, the encoder, and its training."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path

from torch import nn

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.identity import derive
from isogloss.core.records import Value
from isogloss.encoders import FAMILIES
from isogloss.encoders.added.active_language import check_languages
from isogloss.encoders.added.language_modules import ensure_modules
from isogloss.encoders.families import family_of
from isogloss.encoders.family import Model, Tokenizer
from isogloss.encoders.folders import load_encoder_config
from isogloss.encoders.learned_subwords import write_tokenizer
from isogloss.features.pretraining.held_out import held_out_batches, perplexity_rows, plateau_warnings
from isogloss.features.pretraining.new_subwords import (
    add_embeddings,
    add_subwords,
    added_subwords,
    read_subwords,
    subword_averages,
    word_translations,
)
from isogloss.features.pretraining.new_tokenizers import read_tokenizer, train_tokenizer
from isogloss.features.pretraining.parameters import module_parameters
from isogloss.features.pretraining.starts import (
    dropout_rates,
    load_text_tokenizer,
    load_to_continue,
    new_encoder,
)
from isogloss.features.pretraining.streams import is_stream, open_stream, write_stream
from isogloss.tasks.masked_lm import MaskedBatch, Masking, TextStream, Vocabulary, masked_lm_loss
from isogloss.training.batching import BatchesByStep, BatchSampling, Parallel, TextBatches
from isogloss.training.checkpoints import Checkpoints
from isogloss.training.distributed import main_process_first
from isogloss.training.fit import Callback, Callbacks, fit, training_only
from isogloss.training.setting import Pretraining, TextSetting, Trained
from isogloss.training.text_training import PretrainingStart, check_objective

Streams = dict[str, TextStream]
"""Streams by language."""


def begin_pretraining(
    setting: TextSetting, method: Pretraining, *, attention: str = "eager", mask: str | None = None
) -> PretrainingStart:
    """Read the text, train the vocabulary, and create the encoder (``text_training.begin_pretraining``)."""
    _check(setting, method)
    check_objective(method.name, setting.family, next_token=mask is not None)
    training = method.training
    sampling = _sampling(setting, method)
    with main_process_first():
        tokenizer, streams, held_out = _read(setting, method)
    vocabulary = Vocabulary.from_tokenizer(tokenizer, mask=mask or "")
    model, dropout = _model(setting, tokenizer, attention, rate=training.dropout or 0.0)
    rows = (_embed_new(setting, model, tokenizer),) if setting.vocabulary else ()
    ensure_modules(model, setting.modules, setting.languages, seed=derive(setting.seed, "modules"))
    check_languages(model, setting.languages_read)
    masking = Masking(
        vocabulary=vocabulary,
        share=training.masked,
        first_position=family_of(model).first_position,
        next_token=mask is not None,
    )
    batches = {
        language: held_out_batches(
            stream, sampling, masking, seed=derive(setting.seed, "held out"), language=language
        )
        for language, stream in held_out.items()
    }
    return PretrainingStart(
        model=model,
        tokenizer=tokenizer,
        masking=masking,
        streams=streams,
        held_out=held_out,
        sampling=sampling,
        periodic=_perplexity_callbacks(model, batches, method, at_start=bool(setting.start)),
        rows=rows,
        dropout=dropout,
        trained=_trained_parameters(model, setting),
        plateau_warnings=partial(plateau_warnings, held_out=held_out, special=vocabulary.special),
    )


def _sampling(setting: TextSetting, method: Pretraining) -> BatchSampling:
    """Return the sampling of batches of text."""
    training = method.training
    return BatchSampling(
        steps=training.steps,
        batch_subwords=training.batch_subwords,
        block=training.block,
        temperature=training.temperature,
        mixed=method.mixed,
        translation=method.translation,
        replay=setting.replay,
    )


def train_on_text(
    start: PretrainingStart,
    setting: TextSetting,
    method: Pretraining,
    *,
    translations: Sequence[Parallel] = (),
    periodic: tuple[Callback, ...] = (),
) -> Trained:
    """Train a model to predict hidden subwords (``text_training.train_on_text``)."""
    model = start.model
    text = TextBatches(
        sampling=start.sampling,
        streams=start.streams,
        translations=translations,
        masking=start.masking,
        seed=derive(setting.seed, "text"),
    )
    rounded_batches = BatchesByStep(len(text), lambda step: text[step].rounded())
    batches = rounded_batches if method.updates.capture else text
    callbacks = Callbacks(
        periodic=(*start.periodic, *periodic),
        checkpoints=Checkpoints(setting.folder, method.updates.checkpoint_every),
        on_progress=setting.on_progress,
        what="pretraining",
    )
    with training_only(model, start.trained):
        rows = fit(
            model,
            batches,
            masked_lm_loss,
            updates=method.updates,
            seed=setting.seed,
            callbacks=callbacks,
        )
    model.config.update(start.dropout)
    return Trained(model, start.tokenizer, [*start.rows, *rows], start.plateau_warnings(rows))


def _trained_parameters(model: Model, setting: TextSetting) -> tuple[nn.Parameter, ...] | None:
    """Return the parameters that are trained, or None for all."""
    if setting.trained == "modules":
        return tuple(module_parameters(model, setting.languages).values())
    if setting.trained != "layers":
        return None
    embeddings = {id(weight) for weight in family_of(model).embeddings(model).parameters()}
    return tuple(weight for weight in model.parameters() if id(weight) not in embeddings)


def _model(
    setting: TextSetting, tokenizer: Tokenizer, attention: str, *, rate: float
) -> tuple[Model, dict[str, float]]:
    """Return a new encoder, or the start, with its masked-LM head, and the dropout rates to save with it.

    ``rate`` is the dropout of this training.
    """
    seed = derive(setting.seed, "encoder")
    if setting.architecture is None:
        model = load_to_continue(setting.start, seed=seed, attention=attention, dropout=rate)
        return model, dropout_rates(setting.start)
    fields = FAMILIES[setting.architecture.family].dropouts
    model = new_encoder(setting.architecture, tokenizer, seed=seed, attention=attention, dropout=rate)
    return model, dict.fromkeys(fields, setting.architecture.dropout)


def _check(setting: TextSetting, method: Pretraining) -> None:
    if method.holds_out and setting.held_out is None:
        field = "validation_text" if method.training.evaluate_every is None else "evaluate_every"
        raise DataError(f"{field} needs held-out text, and none was given. Remove the field.")
    shape = setting.architecture
    positions = (
        shape.positions
        if shape
        else FAMILIES[setting.family].longest_text(load_encoder_config(setting.start))
    )
    if method.training.block > positions:
        raise ConfigError(
            f"pretraining: rows of {method.training.block} subwords (block), but the "
            f"{'architecture' if shape else 'encoder'} has only {positions} positions. "
            f"{'Raise positions or lower' if shape else 'Lower'} block."
        )


def _perplexity_callbacks(
    model: Model, batches: Mapping[str, Sequence[MaskedBatch]], method: Pretraining, *, at_start: bool
) -> tuple[Callback, ...]:
    steps = method.training.evaluate_every
    if steps is None:
        return ()
    precision = method.updates.precision
    rows = partial(perplexity_rows, model, batches, steps_per_epoch=steps, precision=precision)
    return (Callback(rows=rows, every=steps, at_start=at_start),)


def _read(setting: TextSetting, method: Pretraining) -> tuple[Tokenizer, Streams, Streams]:
    """Read the text once, and return the tokenizer, the training text and the held-out text.

    The first lines of each language form the vocabulary, all lines the streams. Files that an interrupted run
    has already written are used again.
    """
    lines = {language: iter(setting.text(language)) for language in setting.languages_read}
    path = setting.folder / "tokenizer" / "tokenizer.json"
    tokenizer = _existing_tokenizer(setting, path)
    if tokenizer is None:
        share = max(1, method.training.vocabulary_lines // len(setting.languages))
        openings = {language: list(islice(lines[language], share)) for language in setting.languages}
        lines |= {language: chain(openings[language], lines[language]) for language in setting.languages}
        tokenizer = _learn_tokenizer(setting, chain.from_iterable(openings.values()))
        write_tokenizer(tokenizer, path)
    read_held_out = setting.held_out if method.holds_out else None
    held_out = (
        {language: iter(read_held_out(language)) for language in setting.languages_read}
        if read_held_out
        else {}
    )

    def streams(texts: Mapping[str, Iterator[str]], folder: Path) -> Streams:
        longest = method.training.block - 2
        return {
            language: open_stream(folder / language)
            if is_stream(folder / language)
            else write_stream(text, tokenizer, folder / language, longest=longest)
            for language, text in texts.items()
        }

    return tokenizer, streams(lines, setting.folder / "text"), streams(held_out, setting.folder / "held-out")


def _existing_tokenizer(setting: TextSetting, path: Path) -> Tokenizer | None:
    """Return the tokenizer of an interrupted run or of the start, or None if one must be learned."""
    if setting.architecture is not None:
        return read_tokenizer(path, family=setting.architecture.family) if path.exists() else None
    if setting.vocabulary is not None and not path.exists():
        return None
    tokenizer = load_text_tokenizer(setting.start)
    if setting.vocabulary is not None:
        read_subwords(tokenizer, path)
    return tokenizer


def _learn_tokenizer(setting: TextSetting, lines: Iterator[str]) -> Tokenizer:
    """Learn a vocabulary from text, or the subwords that are added to the start's vocabulary."""
    if setting.architecture is not None:
        shape = setting.architecture
        return train_tokenizer(lines, family=shape.family, size=shape.vocabulary)
    tokenizer = load_text_tokenizer(setting.start)
    if setting.vocabulary is not None:
        add_subwords(tokenizer, lines, size=setting.vocabulary.size)
    return tokenizer


def _embed_new(setting: TextSetting, model: Model, tokenizer: Tokenizer) -> dict[str, Value]:
    """Initialise the embeddings of added subwords, and return a row with the numbers per source."""
    start_tokenizer = load_text_tokenizer(setting.start)
    subwords = added_subwords(start_tokenizer, tokenizer)
    source = setting.vocabulary and setting.vocabulary.embeddings
    pairs = chain.from_iterable(setting.bitext.values()) if source == "translations" else ()
    translations = word_translations(start_tokenizer, tokenizer, subwords, pairs)
    averages = {} if source == "random" else subword_averages(start_tokenizer, subwords)
    sources = {subword: translations.get(subword) or averages.get(subword, {}) for subword in subwords}
    if sources:
        special = set(start_tokenizer.all_special_ids)
        add_embeddings(model, sources, special=special, seed=derive(setting.seed, "new subwords"))
    translation_count = sum(bool(parts) for parts in translations.values())
    source_count = sum(bool(parts) for parts in sources.values())
    return {
        "added": len(subwords),
        "from_translations": translation_count,
        "from_averages": source_count - translation_count,
        "at_random": len(subwords) - source_count,
    }
