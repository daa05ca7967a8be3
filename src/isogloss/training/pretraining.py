"""Pretraining by masked language modelling: text read once, batches of it, a new encoder, and perplexity.

Languages are drawn in proportion to size^(1/T) (Devlin et al.'s multilingual sampling; paper 4, Section 3.2).
Perplexity is e to the mean cross entropy per hidden subword of held-out text, under the same masks whenever
it is measured, so only models with one vocabulary can be compared.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from torch import nn

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.records import Value
from isogloss.core.run_parts import TextTraining, Updates, values_of
from isogloss.core.seeds import derive
from isogloss.encoders import (
    FAMILIES,
    family_of,
    load_encoder_config,
    new_encoder,
    read_tokenizer,
    train_tokenizer,
    write_tokenizer,
)
from isogloss.encoders.annotations import Tokenizer
from isogloss.encoders.continuing import dropout_rates, load_text_tokenizer, load_to_continue
from isogloss.encoders.language_modules import give_modules
from isogloss.encoders.language_parameters import module_parameters
from isogloss.tasks.masked_lm import MaskedBatch, Masking, Vocabulary, masked_lm_loss
from isogloss.tasks.task import Model
from isogloss.tasks.text_stream import TextStream, is_stream, open_stream, write_stream
from isogloss.training.distributed import main_process_first
from isogloss.training.fit import Callback
from isogloss.training.precision import scoring
from isogloss.training.setting import TextSetting

CANDIDATES = 8
"""Translations drawn for each one used: a slice of similar length among them wastes little padding."""

Parallel = dict[str, np.ndarray]
"""One text in several languages, as subwords."""

Rows = list[list[np.ndarray]]
Languages = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class BatchSampling:
    """How batches are sampled."""

    steps: int
    """Number of batches."""
    batch_subwords: int
    """Subwords of one batch, padding included."""
    block: int
    """Subwords of one row of text, special ones included."""
    temperature: float = 1.0
    """T in size^(1/T)."""
    mixed: bool = False
    """True: rows of one batch come from all languages; False: a batch holds one language."""
    translation: float = 0.0
    """Share of the batches that are translations."""

    @property
    def rows(self) -> int:
        """Rows of a batch of text."""
        return max(1, self.batch_subwords // self.block)


@dataclass(frozen=True, kw_only=True)
class TextBatches:
    """Batch i: translations or text, drawn from (seed, i) alone; each knows the language of its rows."""

    sampling: BatchSampling
    streams: Mapping[str, TextStream]
    """By language."""
    translations: Sequence[Parallel] = ()
    masking: Masking
    seed: int

    def __len__(self) -> int:
        return self.sampling.steps

    def __getitem__(self, step: int) -> MaskedBatch:
        seed = derive(self.seed, step)
        rng = np.random.Generator(np.random.PCG64(seed))
        parallel = bool(self.translations) and rng.random() < self.sampling.translation
        languages, rows = self._pairs(rng) if parallel else self._blocks(rng)
        return self.masking.batch(rows, seed=seed, languages=languages)

    def _blocks(self, rng: np.random.Generator) -> tuple[Languages, Rows]:
        how, codes = self.sampling, list(self.streams)
        sizes = np.array([len(stream) for stream in self.streams.values()], dtype=np.float64)
        weights = sizes ** (1 / how.temperature)
        drawn = rng.choice(len(codes), size=how.rows if how.mixed else 1, p=weights / weights.sum())
        languages = tuple(codes[number] for number in np.resize(drawn, how.rows))
        streams = [self.streams[code] for code in languages]
        places = [int(rng.integers(len(stream.starts))) for stream in streams]
        length = how.block - 2
        rows = [[stream.block(place, length)] for stream, place in zip(streams, places, strict=True)]
        return languages if how.mixed else languages[:1], rows

    def _pairs(self, rng: np.random.Generator) -> tuple[Languages, Rows]:
        wanted = max(2, self.sampling.batch_subwords // 32)
        drawn = [self._pair(rng) for _ in range(CANDIDATES * wanted // 2)]
        drawn.sort(key=lambda pair: sum(map(len, pair[1])))
        start = int(rng.integers(len(drawn)))
        languages: list[str] = []
        rows: Rows = []
        widest = 0
        for language, pair in chain(drawn[start:], reversed(drawn[:start])):
            widest = max(widest, sum(map(len, pair)) + 3)
            if rows and (len(rows) + 1) * widest > self.sampling.batch_subwords:
                break
            languages.append(language)
            rows.append(pair)
        return tuple(languages), rows

    def _pair(self, rng: np.random.Generator) -> tuple[str, list[np.ndarray]]:
        text = self.translations[int(rng.integers(len(self.translations)))]
        first, second = rng.choice(len(text), size=2, replace=False)
        codes, sides = list(text), list(text.values())
        return f"{codes[first]}+{codes[second]}", [sides[first], sides[second]]


MOST_SUBWORDS = 65536
"""Held-out subwords of a language that are read: some 10,000 predictions, a standard error of 0.03 nats."""


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """Held-out text of several languages, its masks drawn once."""

    batches: Mapping[str, Sequence[MaskedBatch]]
    """By language."""
    every: int
    """Steps of an epoch."""
    precision: str = "auto"

    def notes(self, model: Model, done: int) -> list[dict[str, Value]]:
        """Return a row for each language."""
        return [
            {
                "step": done,
                "epoch": -(-done // self.every),
                "language": language,
                "split": "dev",
                "metric": "perplexity",
                "score": round(perplexity(model, batches, precision=self.precision), 6),
            }
            for language, batches in self.batches.items()
        ]


def perplexity(model: Model, batches: Sequence[MaskedBatch], *, precision: str = "auto") -> float:
    """Return the perplexity of the hidden subwords of all batches, infinite where it is too large to say."""
    total = hidden = 0.0
    with scoring(model, precision) as device:
        for batch in batches:
            total += float(masked_lm_loss(model, batch.to(device))) * len(batch.gold)
            hidden += len(batch.gold)
    mean = total / hidden
    return math.exp(mean) if mean < math.log(np.finfo(np.float64).max) else math.inf


def held_out_batches(
    stream: TextStream, sampling: BatchSampling, masking: Masking, *, seed: int, language: str
) -> list[MaskedBatch]:
    """Cut a text into blocks that begin as those of training do, none over another, and mask them.

    Of a long text, evenly spread blocks of ``MOST_SUBWORDS`` in all.
    """
    length = sampling.block - 2
    places = _apart(stream, length)
    most = max(1, MOST_SUBWORDS // length)
    if len(places) > most:
        places = [places[int(number)] for number in np.linspace(0, len(places) - 1, most)]
    rows = [[stream.block(place, length)] for place in places]
    groups = [rows[first : first + sampling.rows] for first in range(0, len(rows), sampling.rows)]
    return [
        masking.batch(group, seed=derive(seed, language, number), languages=(language,))
        for number, group in enumerate(groups)
    ]


def _apart(stream: TextStream, length: int) -> list[int]:
    """Return starts that are at least a block apart, by their number; the first one in any text."""
    last = max(0, len(stream) - length)
    places, at = [0], length
    while at <= last:
        place = int(np.searchsorted(stream.starts, at))
        if place == len(stream.starts) or stream.starts[place] > last:
            break
        places.append(place)
        at = int(stream.starts[place]) + length
    return places


PRETRAINING_UPDATES = Updates(learning_rate=1e-3, beta2=0.98, epsilon=1e-6, checkpoint_every=500)
"""How weights of a new encoder are updated, whatever the method."""

SHORTEST = 8
"""Subwords of the shortest rows that make sense: six of text, two special."""

MODULES = "modules"
"""The parameters that a run trains alone: its languages' modules."""

Streams = dict[str, TextStream]
"""By language."""


@dataclass(frozen=True, kw_only=True)
class Start:
    """The model, tokenizer and text that a pretraining starts from."""

    model: Model
    """With its masked-LM head, and its language modules where the run asks for some."""
    tokenizer: Tokenizer
    masking: Masking
    streams: Streams
    """The text that is trained on."""
    periodic: tuple[Callback, ...]
    """The callbacks that measure perplexity after each epoch."""
    dropout: Mapping[str, float]
    """The rates to save, by field of the configuration: there is no dropout while it trains on text."""
    trained: tuple[nn.Parameter, ...] | None = None
    """The parameters that are trained; None for all."""


@runtime_checkable
class TextMethod(Protocol):
    """The fields that every method of pretraining has."""

    name: ClassVar[str]

    @property
    def training(self) -> TextTraining:
        """How long, on what batches of text, and how that is followed."""
        ...

    @property
    def updates(self) -> Updates:
        """How weights are updated."""
        ...


def sampling_of(training: TextTraining) -> BatchSampling:
    """Return the sampling of batches that a training on text specifies."""
    return BatchSampling(
        steps=training.steps,
        batch_subwords=training.batch_subwords,
        block=training.block,
        temperature=training.temperature,
    )


def begin(
    setting: TextSetting, method: TextMethod, sampling: BatchSampling, *, attention: str = "eager"
) -> Start:
    """Read the text, train the vocabulary, and make the encoder, as a method's fields say.

    ``attention`` is one of transformers' names; only the explicit ones have second derivatives.
    ConfigError for rows longer than the encoder's positions, DataError without text to hold out.
    """
    _check(setting, method)
    with main_process_first():
        tokenizer, streams, held_out = _read(setting, method)
    model, dropout = _model(setting, tokenizer, attention)
    give_modules(model, setting.modules, setting.languages, seed=derive(setting.seed, "modules"))
    own = module_parameters(model, setting.languages).values()
    masking = Masking(
        vocabulary=Vocabulary.of(tokenizer),
        share=method.training.masked,
        first_position=family_of(model).first_position,
    )
    batches = {
        language: held_out_batches(
            stream, sampling, masking, seed=derive(setting.seed, "held out"), language=language
        )
        for language, stream in held_out.items()
    }
    return Start(
        model=model,
        tokenizer=tokenizer,
        masking=masking,
        streams=streams,
        periodic=_perplexity_callbacks(model, batches, method, before=bool(setting.start)),
        dropout=dropout,
        trained=tuple(own) if setting.trained == MODULES else None,
    )


def _model(setting: TextSetting, tokenizer: Tokenizer, attention: str) -> tuple[Model, dict[str, float]]:
    """Return a new encoder, or the start, with its masked-LM head, and the rates of its dropout later."""
    seed = derive(setting.seed, "encoder")
    if setting.architecture is None:
        model = load_to_continue(setting.start, seed=seed, attention=attention)
        return model, dropout_rates(setting.start)
    fields = FAMILIES[setting.architecture.family].dropouts
    model = new_encoder(setting.architecture, tokenizer, seed=seed, attention=attention)
    return model, dict.fromkeys(fields, setting.architecture.dropout)


def check_fields(method: TextMethod, also: Mapping[str, bool]) -> None:
    """Raise ConfigError where a field of a method cannot be; ``also`` tells of its others."""
    how = method.training
    allowed = {
        "steps": how.steps >= 0,
        "block": how.block >= SHORTEST,
        "batch_subwords": how.batch_subwords >= how.block,
        "masked": 0 < how.masked <= 1,
        "temperature": how.temperature > 0,
        "vocabulary_lines": how.vocabulary_lines >= 1,
        "evaluate_every": how.evaluate_every is None or how.evaluate_every >= 1,
        **also,
    }
    for field, fine in allowed.items():
        if not fine:
            raise ConfigError(
                f"{method.name}: {field} cannot be {values_of(method)[field]}. Shares lie in 0 to 1, counts "
                f"are positive, block is {SHORTEST} or more and batch_subwords at least block."
            )


def _check(setting: TextSetting, method: TextMethod) -> None:
    if method.training.evaluate_every is not None and setting.held_out is None:
        raise DataError("evaluate_every needs held-out text, and none was given. Leave the field out.")
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
    model: Model, batches: Mapping[str, Sequence[MaskedBatch]], method: TextMethod, *, before: bool
) -> tuple[Callback, ...]:
    if method.training.evaluate_every is None:
        return ()
    held_out = HeldOut(
        batches=batches, every=method.training.evaluate_every, precision=method.updates.precision
    )
    rows = partial(held_out.notes, model)
    return (Callback(rows=rows, every=method.training.evaluate_every, before=before),)


def _read(setting: TextSetting, method: TextMethod) -> tuple[Tokenizer, Streams, Streams]:
    """Read the text once: the first lines of each language make the vocabulary, all lines the streams.

    Gives the tokenizer, and the text that is trained on and that is held out. What an interrupted run has
    read already is used as it is.
    """
    lines = {language: iter(setting.text(language)) for language in setting.languages}
    kept, shape = setting.folder / "tokenizer" / "tokenizer.json", setting.architecture
    if shape is None:
        tokenizer = load_text_tokenizer(setting.start)
    elif kept.exists():
        tokenizer = read_tokenizer(kept, family=shape.family)
    else:
        share = max(1, method.training.vocabulary_lines // len(lines))
        first = {language: list(islice(text, share)) for language, text in lines.items()}
        lines = {language: chain(first[language], text) for language, text in lines.items()}
        every = chain.from_iterable(first.values())
        tokenizer = train_tokenizer(every, family=shape.family, size=shape.vocabulary)
        write_tokenizer(tokenizer, kept)
    held_out = {} if method.training.evaluate_every is None else _held_out(setting)

    def streams(texts: Mapping[str, Iterator[str]], folder: Path) -> Streams:
        return {
            code: _stream(folder / code, text, tokenizer, method.training.block)
            for code, text in texts.items()
        }

    return tokenizer, streams(lines, setting.folder / "text"), streams(held_out, setting.folder / "held-out")


def _held_out(setting: TextSetting) -> dict[str, Iterator[str]]:
    read = setting.held_out or (lambda _: iter(()))
    return {language: iter(read(language)) for language in setting.languages}


def _stream(folder: Path, lines: Iterator[str], tokenizer: Tokenizer, block: int) -> TextStream:
    if is_stream(folder):
        return open_stream(folder)
    return write_stream(lines, tokenizer, folder, longest=block - 2)
