"""What every way of pretraining begins with: text read once, a new encoder, and who measures perplexity."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.seeds import derive
from isogloss.encoders import FAMILIES, new_encoder, read_tokenizer, train_tokenizer, write_tokenizer
from isogloss.encoders.language_modules import add_modules
from isogloss.tasks.masked_lm import Masking, Vocabulary
from isogloss.tasks.text_stream import TextStream, is_stream, open_stream, write_stream
from isogloss.training.fit import Observer
from isogloss.training.perplexity import HeldOut, held_out_batches
from isogloss.training.processes import first_alone
from isogloss.training.setting import TextSetting
from isogloss.training.text_batches import Drawing

SHORTEST = 8
"""Subwords of the shortest rows that make sense: six of text, two special."""

Streams = dict[str, TextStream]
"""By language."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What is made of the text."""

    masked: float
    """Share of the subwords that are predicted."""
    vocabulary_lines: int
    evaluate_every: int | None
    """Steps of an epoch, after each of which perplexity on held-out text is measured; None when it is not."""
    precision: str


@dataclass(frozen=True, kw_only=True)
class Start:
    """What a pretraining begins with."""

    model: Any
    """With its masked-LM head, and its language modules where the run asks for some."""
    tokenizer: Any
    masking: Masking
    streams: Streams
    """The text that is trained on."""
    observers: tuple[Observer, ...]
    """Who measures the perplexity after each epoch."""


def begin(setting: TextSetting, drawing: Drawing, reading: Reading, *, attention: str = "eager") -> Start:
    """Read the text, train the vocabulary, and make the encoder.

    ``attention`` is one of transformers' names; only the explicit ones have second derivatives.
    ConfigError for rows longer than the encoder's positions, DataError without text to hold out.
    """
    _check(setting, drawing, reading)
    with first_alone():
        tokenizer, streams, held_out = _read(setting, drawing.block, reading)
    seed = derive(setting.seed, "encoder")
    model = new_encoder(setting.architecture, tokenizer, seed=seed, attention=attention)
    if setting.modules is not None:
        add_modules(model, setting.modules, setting.languages, seed=derive(setting.seed, "modules"))
    masking = Masking(
        vocabulary=Vocabulary.of(tokenizer),
        share=reading.masked,
        first_position=FAMILIES[setting.architecture.family].first_position,
    )
    batches = {
        language: held_out_batches(
            stream, drawing, masking, seed=derive(setting.seed, "held out"), language=language
        )
        for language, stream in held_out.items()
    }
    return Start(
        model=model,
        tokenizer=tokenizer,
        masking=masking,
        streams=streams,
        observers=_observers(model, batches, reading),
    )


def check_fields(method: Any, also: Mapping[str, bool]) -> None:
    """Raise ConfigError where a field of a method cannot be; ``also`` tells of its others."""
    allowed = {
        "steps": method.steps >= 1,
        "block": method.block >= SHORTEST,
        "batch_subwords": method.batch_subwords >= method.block,
        "masked": 0 < method.masked <= 1,
        "temperature": method.temperature > 0,
        "vocabulary_lines": method.vocabulary_lines >= 1,
        "evaluate_every": method.evaluate_every is None or method.evaluate_every >= 1,
        **also,
    }
    for field, fine in allowed.items():
        if not fine:
            raise ConfigError(
                f"{method.name}: {field} cannot be {getattr(method, field)}. Shares lie in 0 to 1, counts "
                f"are positive, block is {SHORTEST} or more and batch_subwords at least block."
            )


def _check(setting: TextSetting, drawing: Drawing, reading: Reading) -> None:
    if reading.evaluate_every is not None and setting.held_out is None:
        raise DataError("evaluate_every needs held-out text, and none was given. Leave the field out.")
    positions = setting.architecture.positions
    if drawing.block > positions:
        raise ConfigError(
            f"pretraining: rows of {drawing.block} subwords (block), but the architecture has only "
            f"{positions} positions. Raise positions or lower block."
        )


def _observers(model: Any, batches: Mapping[str, Any], reading: Reading) -> tuple[Observer, ...]:
    if reading.evaluate_every is None:
        return ()
    held_out = HeldOut(batches=batches, every=reading.evaluate_every, precision=reading.precision)
    return (Observer(look=partial(held_out.notes, model), every=reading.evaluate_every),)


def _read(setting: TextSetting, block: int, reading: Reading) -> tuple[Any, Streams, Streams]:
    """Read the text once: the first lines of each language make the vocabulary, all lines the streams.

    Gives the tokenizer, and the text that is trained on and that is held out. What an interrupted run has
    read already is used as it is.
    """
    lines = {language: iter(setting.text(language)) for language in setting.languages}
    kept, family = setting.folder / "tokenizer" / "tokenizer.json", setting.architecture.family
    if kept.exists():
        tokenizer = read_tokenizer(kept, family=family)
    else:
        share = max(1, reading.vocabulary_lines // len(lines))
        first = {language: list(islice(text, share)) for language, text in lines.items()}
        lines = {language: chain(first[language], text) for language, text in lines.items()}
        every = chain.from_iterable(first.values())
        tokenizer = train_tokenizer(every, family=family, size=setting.architecture.vocabulary)
        write_tokenizer(tokenizer, kept)
    held_out = {} if reading.evaluate_every is None else _held_out(setting)

    def streams(texts: Mapping[str, Iterator[str]], folder: Path) -> Streams:
        return {code: _stream(folder / code, text, tokenizer, block) for code, text in texts.items()}

    return tokenizer, streams(lines, setting.folder / "text"), streams(held_out, setting.folder / "held-out")


def _held_out(setting: TextSetting) -> dict[str, Iterator[str]]:
    read = setting.held_out or (lambda _: iter(()))
    return {language: iter(read(language)) for language in setting.languages}


def _stream(folder: Path, lines: Iterator[str], tokenizer: Any, block: int) -> TextStream:
    if is_stream(folder):
        return open_stream(folder)
    return write_stream(lines, tokenizer, folder, longest=block - 2)
